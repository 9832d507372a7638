//! Figures as SVG, drawn without a library: the same points make the same bytes on every machine, since logarithms
//! are those of libm and not the system's.

use std::fmt::Write as _;

use libm::{log10, pow};

/// Curves over a common axis, in panels beside each other.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// The title.
    pub title: String,
    /// From left to right, `ROW_PANELS` in a row.
    pub panels: Vec<Panel>,
}

/// One pair of axes.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The quantity, with its unit.
    pub label: String,
    /// How numbers become places.
    pub scale: Scale,
}

/// How numbers become places.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scale {
    /// From zero, evenly.
    Linear,
    /// By orders of magnitude; numbers below the smallest positive one are put there.
    Log,
}

impl Axis {
    /// An even one.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear }
    }

    /// A logarithmic one.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Log }
    }
}

/// A named line through points.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name; curves of one name have one colour in all panels.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Whether points are joined and how.
    pub stroke: Stroke,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stroke {
    /// Joined, with a mark at each point.
    Solid,
    /// Joined by dashes.
    Dashed,
    /// As stairs: a distribution.
    Steps,
}

impl Figure {
    /// One of these panels.
    pub fn new(title: impl Into<String>, panels: impl IntoIterator<Item = Panel>) -> Figure {
        Figure { title: title.into(), panels: panels.into_iter().collect() }
    }

    /// The picture.
    pub fn to_svg(&self) -> String {
        let beside = self.panels.len().min(ROW_PANELS) as f64;
        let width = (beside * (PANEL.0 + MARGIN.0) + MARGIN.0 / 2.0).max(WIDTH_MIN);
        let rows = self.panels.len().div_ceil(ROW_PANELS).max(1) as f64;
        let rows = rows * (PANEL.1 + MARGIN.1) + (rows - 1.0) * BETWEEN;
        let names = self.names();
        let columns = legend_columns(&names, width);
        let legend = 18.0 * names.len().div_ceil(columns) as f64;
        let height = rows + TOP + legend;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        text(&mut out, (width / 2.0, 20.0), "middle", 15, &self.title);
        for (place, panel) in self.panels.iter().enumerate() {
            let left = MARGIN.0 + (place % ROW_PANELS) as f64 * (PANEL.0 + MARGIN.0) - 10.0;
            match place / ROW_PANELS {
                0 => panel.draw(&mut out, left, &names),
                row => {
                    let down = row as f64 * (PANEL.1 + MARGIN.1 + BETWEEN);
                    let _ = writeln!(out, "<g transform=\"translate(0 {down:.0})\">");
                    panel.draw(&mut out, left, &names);
                    out += "</g>\n";
                }
            }
        }
        for (place, name) in names.iter().enumerate() {
            let column = (place % columns) as f64;
            let x = MARGIN.0 + column * (width - MARGIN.0) / columns as f64;
            let y = TOP + rows - 6.0 + 18.0 * (place / columns) as f64;
            let ink = ink(place);
            let _ = writeln!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" {ink}/>",
                x + 22.0
            );
            text(&mut out, (x + 28.0, y + 4.0), "start", 12, name);
        }
        out + "</svg>\n"
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for curve in self.panels.iter().flat_map(|panel| &panel.curves) {
            if !names.contains(&curve.name.as_str()) {
                names.push(&curve.name);
            }
        }
        names
    }
}

impl Panel {
    /// Curves over these axes.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis, curves: Vec<Curve>) -> Panel {
        Panel { title: title.into(), x, y, curves }
    }

    fn draw(&self, out: &mut String, left: f64, names: &[&str]) {
        let points = || self.curves.iter().flat_map(|curve| curve.points.iter().copied());
        let x = Range::of(self.x.scale, points().map(|(x, _)| x));
        let y = Range::of(self.y.scale, points().map(|(_, y)| y));
        let place = |(at_x, at_y): (f64, f64)| {
            (left + x.share(at_x) * PANEL.0, TOP + (1.0 - y.share(at_y)) * PANEL.1)
        };
        text(out, (left + PANEL.0 / 2.0, TOP - 8.0), "middle", 13, &self.title);
        for tick in x.ticks() {
            let at = left + x.share(tick) * PANEL.0;
            line(out, (at, TOP), (at, TOP + PANEL.1), "#e5e5e5");
            text(out, (at, TOP + PANEL.1 + 16.0), "middle", 11, &short(tick));
        }
        for tick in y.ticks() {
            let at = TOP + (1.0 - y.share(tick)) * PANEL.1;
            line(out, (left, at), (left + PANEL.0, at), "#e5e5e5");
            text(out, (left - 5.0, at + 4.0), "end", 11, &short(tick));
        }
        line(out, (left, TOP + PANEL.1), (left + PANEL.0, TOP + PANEL.1), "black");
        line(out, (left, TOP), (left, TOP + PANEL.1), "black");
        let below = TOP + PANEL.1 + 34.0;
        text(out, (left + PANEL.0 / 2.0, below), "middle", 12, &self.x.label);
        let (label_x, label_y) = (left - 44.0, TOP + PANEL.1 / 2.0);
        let _ = writeln!(
            out,
            "<text x=\"{label_x:.1}\" y=\"{label_y:.1}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 {label_x:.1} {label_y:.1})\">{}</text>",
            escape(&self.y.label)
        );
        for curve in &self.curves {
            let number = names.iter().position(|name| *name == curve.name).unwrap_or_default();
            curve.draw(out, number, place);
        }
    }
}

impl Curve {
    /// A line through these points with a mark at each.
    pub fn solid(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Curve {
        let (name, points) = (name.to_owned(), points.into_iter().collect());
        Curve { name, points, stroke: Stroke::Solid }
    }

    fn draw(&self, out: &mut String, number: usize, place: impl Fn((f64, f64)) -> (f64, f64)) {
        let mut path = String::new();
        let mut before: Option<(f64, f64)> = None;
        for point in self.points.iter().map(|point| place(*point)) {
            if let (Some((_, y)), Stroke::Steps) = (before, self.stroke) {
                let _ = write!(path, "L{:.1} {y:.1} ", point.0);
            }
            let verb = if before.is_none() { 'M' } else { 'L' };
            let _ = write!(path, "{verb}{:.1} {:.1} ", point.0, point.1);
            before = Some(point);
            if self.stroke == Stroke::Solid {
                let (x, y) = point;
                let color = COLORS[number % COLORS.len()];
                let _ =
                    writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>");
            }
        }
        let dashes = match self.stroke {
            Stroke::Dashed if number < COLORS.len() => " stroke-dasharray=\"6 4\"",
            _ => "",
        };
        let _ = writeln!(
            out,
            "<path d=\"{}\" fill=\"none\" {}{dashes}/>",
            path.trim_end(),
            ink(number)
        );
    }
}

/// Names beside each other: as many as have room for the longest.
fn legend_columns(names: &[&str], width: f64) -> usize {
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let room = |columns: usize| (width - MARGIN.0) / columns as f64 - LEGEND_SIGN;
    let fits = |columns: &usize| longest as f64 * LETTER <= room(*columns);
    (1..=LEGEND_COLUMNS).rev().find(fits).unwrap_or(1)
}

/// The range of an axis.
struct Range {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Range {
    fn of(scale: Scale, numbers: impl Iterator<Item = f64> + Clone) -> Range {
        let high = numbers.clone().fold(f64::MIN, f64::max);
        match scale {
            Scale::Linear => {
                let step = step(high.max(1e-9));
                Range { scale, low: 0.0, high: (high.max(1e-9) / step).ceil() * step }
            }
            Scale::Log => {
                let low = numbers.filter(|number| *number > 0.0).fold(f64::MAX, f64::min);
                let low = if low == f64::MAX { 1.0 } else { low };
                let bound = |number: f64, up: f64| {
                    let decade = pow(10.0, log10(number).floor());
                    let nice = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * decade);
                    if up > 0.0 {
                        nice.into_iter().find(|nice| *nice >= number * 0.999).unwrap_or(number)
                    } else {
                        nice.into_iter().rfind(|nice| *nice <= number * 1.001).unwrap_or(number)
                    }
                };
                let (low, high) = (bound(low, -1.0), bound(high.max(low), 1.0));
                Range { scale, low, high: if high > low { high } else { low * 10.0 } }
            }
        }
    }

    fn share(&self, number: f64) -> f64 {
        match self.scale {
            Scale::Linear => number / self.high,
            Scale::Log => log10(number.max(self.low) / self.low) / log10(self.high / self.low),
        }
    }

    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.high);
                (0..=(self.high / step).round() as u32).map(|n| f64::from(n) * step).collect()
            }
            Scale::Log => {
                let first = log10(self.low).floor() as i32;
                let last = log10(self.high).ceil() as i32;
                let digits: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let inside = self.low * 0.999..=self.high * 1.001;
                (first..=last)
                    .flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)))
                    .filter(|tick| inside.contains(tick))
                    .collect()
            }
        }
    }
}

/// A distance between ticks that makes four to ten of them.
fn step(high: f64) -> f64 {
    let decade = pow(10.0, log10(high).floor());
    let digits = high / decade;
    decade
        * if digits <= 2.0 {
            0.25
        } else if digits <= 5.0 {
            0.5
        } else {
            1.0
        }
}

fn short(number: f64) -> String {
    let rounded = (number * 1000.0).round() / 1000.0;
    match rounded.abs() {
        1e6.. => format!("{}M", rounded / 1e6),
        1e4.. => format!("{}k", rounded / 1e3),
        _ => format!("{rounded}"),
    }
}

/// How the curves of one name differ from those of others: by colour, and by dots once the colours repeat.
fn ink(number: usize) -> String {
    let color = COLORS[number % COLORS.len()];
    let round = number / COLORS.len();
    match round {
        0 => format!("stroke=\"{color}\" stroke-width=\"2\""),
        _ => format!("stroke=\"{color}\" stroke-width=\"2\" stroke-dasharray=\"2 {}\"", round * 2),
    }
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64), color: &str) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(out: &mut String, at: (f64, f64), anchor: &str, size: u32, words: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{}</text>",
        at.0,
        at.1,
        escape(words)
    );
}

pub(crate) fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A panel's width and height.
const PANEL: (f64, f64) = (340.0, 260.0);
/// Room for labels left of a panel and below it.
const MARGIN: (f64, f64) = (70.0, 60.0);
/// Room for titles and names, however few panels there are.
const WIDTH_MIN: f64 = 640.0;
/// Panels beside each other.
pub(crate) const ROW_PANELS: usize = 3;
/// Room between rows of panels, for the titles of the lower ones.
const BETWEEN: f64 = 24.0;
/// Room above the panels.
const TOP: f64 = 56.0;
/// Names beside each other below the panels, at most.
const LEGEND_COLUMNS: usize = 4;
/// The width of the line sample before a name in the legend, and about that of a letter.
const LEGEND_SIGN: f64 = 28.0;
const LETTER: f64 = 6.6;
/// Colours that most eyes can tell apart (Okabe and Ito 2008), and two more that contrast with white and black.
const COLORS: [&str; 9] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8f6fd1",
    "#8a8a8a",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        let linear = |high| Range::of(Scale::Linear, [high].into_iter()).ticks();
        assert_eq!(linear(100.0), [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(
            linear(0.42),
            [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45]
                .map(|tick: f64| (tick / 0.05).round() * 0.05)
        );
        let log = Range::of(Scale::Log, [3.0, 400.0].into_iter());
        assert_eq!((log.low, log.high), (2.0, 500.0));
        assert_eq!(log.ticks().first(), Some(&2.0));
    }

    #[test]
    fn names_have_room() {
        let columns = |longest: usize, width| legend_columns(&["a", &"m".repeat(longest)], width);
        assert_eq!([11, 17, 22, 30, 300].map(|longest| columns(longest, 640.0)), [4, 4, 3, 2, 1]);
        assert_eq!(columns(40, 1_265.0), 4);
    }

    #[test]
    fn a_figure_is_the_same_twice_and_names_its_curves() {
        let curve = |name: &str, points: &[(f64, f64)]| Curve {
            name: name.to_owned(),
            points: points.to_vec(),
            stroke: Stroke::Solid,
        };
        let panel = Panel {
            title: "a < b".to_owned(),
            x: Axis::linear("x"),
            y: Axis::log("y"),
            curves: vec![curve("one", &[(0.0, 1.0), (5.0, 0.0)]), curve("two", &[(1.0, 9.0)])],
        };
        let figure = Figure { title: "&".to_owned(), panels: vec![panel.clone(), panel] };
        let svg = figure.to_svg();
        assert_eq!(svg, figure.to_svg());
        assert_eq!(svg.matches(">one<").count(), 1, "one name, one entry");
        let inks: std::collections::BTreeSet<String> = (0..40).map(ink).collect();
        assert_eq!(inks.len(), 40, "no two names look the same");
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN") && !svg.contains("inf"));
    }
}
