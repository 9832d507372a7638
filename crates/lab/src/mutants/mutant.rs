//! A mutant: one small fault at one place of a source file, written so that a running program can have it or not.

use std::ops::Range;

/// The path of the function that says, in each crate, whether a mutant is the chosen one.
pub(crate) const SWITCH: &str = "crate::mutation::on";

/// One fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Mutant {
    /// The file, from the root of the repository.
    pub file: String,
    /// The line on which it stands, from 1.
    pub line: usize,
    /// The kind of fault.
    pub operator: &'static str,
    /// The octets of the file that it changes; none where something is inserted.
    pub span: Range<usize>,
    /// What stands there now, and for a function what it is.
    pub original: String,
    /// What stands there in the mutant.
    pub mutated: String,
    /// How the two are joined.
    pub form: Form,
}

/// How one text holds both the program and its mutant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// One of two expressions.
    Either,
    /// A condition, or its opposite.
    Opposite,
    /// A statement, or none.
    Without,
    /// A function that goes on, or returns at once.
    Return,
}

impl Mutant {
    /// The text that replaces the span: the program while another mutant is chosen, or none.
    pub(crate) fn text(&self, number: usize, source: &str) -> String {
        let (here, mutated) = (&source[self.span.clone()], &self.mutated);
        match self.form {
            Form::Either => format!("(if {SWITCH}({number}) {{ {mutated} }} else {{ {here} }})"),
            Form::Opposite => format!("({SWITCH}({number}) != ({here}))"),
            Form::Without => format!("if !{SWITCH}({number}) {{ {here} }}"),
            Form::Return => format!(" if {SWITCH}({number}) {{ {mutated}; }}"),
        }
    }

    /// Whether both change the same octets.
    pub(crate) fn overlaps(&self, other: &Mutant) -> bool {
        self.file == other.file
            && self.span.start <= other.span.end
            && other.span.start <= self.span.end
    }

    /// Where it is, as editors take it.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// A file with mutants in it, and where each of them stands there.
pub(crate) struct Mutated {
    pub text: String,
    /// By place in the new text: the number of the mutant.
    pub spans: Vec<(Range<usize>, usize)>,
}

impl Mutated {
    /// Puts mutants with their numbers into a file. They do not overlap.
    pub(crate) fn new(source: &str, mutants: &[(usize, &Mutant)]) -> Mutated {
        let mut ordered: Vec<&(usize, &Mutant)> = mutants.iter().collect();
        ordered.sort_by_key(|(_, mutant)| mutant.span.start);
        let (mut text, mut spans, mut end) = (String::new(), Vec::new(), 0);
        for (number, mutant) in ordered {
            text.push_str(&source[end..mutant.span.start]);
            let start = text.len();
            text.push_str(&mutant.text(*number, source));
            spans.push((start..text.len(), *number));
            end = mutant.span.end;
        }
        text.push_str(&source[end..]);
        Mutated { text, spans }
    }

    /// The mutants that a compiler's error is about, by the octets that it names: those that touch them, or else the
    /// one that is nearest.
    pub(crate) fn about(&self, named: &[Range<usize>]) -> Vec<usize> {
        let touched = |span: &Range<usize>| {
            named.iter().any(|named| span.start < named.end && named.start < span.end)
        };
        let all = self.spans.iter();
        let found: Vec<usize> =
            all.clone().filter(|(span, _)| touched(span)).map(|(_, number)| *number).collect();
        if !found.is_empty() {
            return found;
        }
        let distance = |span: &Range<usize>| {
            let of = |named: &Range<usize>| named.start.abs_diff(span.start);
            named.iter().map(of).min().unwrap_or(usize::MAX)
        };
        let nearest = all.min_by_key(|(span, _)| distance(span));
        nearest.map(|(_, number)| *number).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn either(span: Range<usize>, mutated: &str) -> Mutant {
        Mutant {
            file: "a.rs".to_owned(),
            line: 1,
            operator: "relation",
            span,
            original: String::new(),
            mutated: mutated.to_owned(),
            form: Form::Either,
        }
    }

    #[test]
    fn mutants_are_put_in_and_found_again() {
        let (first, second) = (either(0..5, "a <= b"), either(9..14, "c != d"));
        let mutated = Mutated::new("a < b && c == d;", &[(7, &second), (3, &first)]);
        let spell = |number, mutated, original| {
            format!("(if {SWITCH}({number}) {{ {mutated} }} else {{ {original} }})")
        };
        let (one, two) = (spell(3, "a <= b", "a < b"), spell(7, "c != d", "c == "));
        assert_eq!(mutated.text, format!("{one} && {two}d;"));
        let at = one.len() + 6;
        let end = mutated.text.len();
        let (inside, behind) = (at..at + 1, end..end);
        assert_eq!(mutated.about(&[2..3, inside.clone()]), [3, 7]);
        for named in [inside, behind] {
            assert_eq!(mutated.about(&[named]), [7]);
        }
        assert!(first.overlaps(&either(4..9, "")) && !first.overlaps(&second));
    }
}
