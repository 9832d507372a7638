//! A listener's guesses as numbers: how many bits features tell of a class, how well they tell two kinds apart, and how
//! far off a guess at a number is. The caller chooses the features.

mod estimate;
mod forest;

use crate::rng::Rng;
pub(crate) use estimate::{Estimate, alike};
use forest::Forest;

/// The value of a feature that is not there.
pub(crate) const NEVER: f64 = 99.0;

/// Stretches of samples that are guessed in turn from all others.
const FOLDS: usize = 5;
/// Orders in which nothing can be learnt, whose mean is what an estimate shows by chance.
const SHUFFLES: usize = 20;
/// Bins of a feature for each class at most, and samples for each bin.
const BINS_MAX: usize = 3;
const BIN_SAMPLES: usize = 25;
/// Samples from which a forest grows at most.
const GROWN_MAX: usize = 1_500;

/// Splits samples by their values into `count` classes of about one size.
pub(crate) fn classes(values: &[f64], count: usize) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut edges: Vec<f64> =
        (1..count).map(|place| sorted[place * sorted.len() / count]).collect();
    edges.dedup();
    values.iter().map(|value| edges.partition_point(|edge| edge <= value)).collect()
}

/// Bits in these classes.
pub(crate) fn entropy(classes: &[usize]) -> f64 {
    let n = classes.len() as f64;
    let shares = counts(classes).into_iter().map(|count| count as f64 / n);
    shares.filter(|share| *share > 0.0).map(|share| -share * share.log2()).sum()
}

fn counts(classes: &[usize]) -> Vec<usize> {
    let mut counts = vec![0; classes.iter().max().map_or(0, |most| most + 1)];
    classes.iter().for_each(|class| counts[*class] += 1);
    counts
}

/// Bits that the features tell of the classes: the most that one of `alone` tells by itself, or all of them together.
/// Never below zero.
pub(crate) fn bits(
    rows: &[Vec<f64>],
    classes: &[usize],
    alone: &[usize],
    rng: &mut Rng,
) -> Estimate {
    if rows.len() < 2 * FOLDS {
        return Estimate::default();
    }
    let (by_one, by_all) = (best_alone(rows, classes, alone, rng), together(rows, classes, rng));
    let mean = |told: &[f64]| told.iter().sum::<f64>() / told.len() as f64;
    let told = if mean(&by_one) > mean(&by_all) { by_one } else { by_all };
    let measure = |picked: &[usize]| {
        picked.iter().map(|place| told[*place]).sum::<f64>() / picked.len() as f64
    };
    Estimate::of(told.len(), rng, measure).at_least(0.0)
}

/// What each sample adds to the plug-in estimate of mutual information between the classes and the feature that tells
/// most: corrected by Miller and Madow, less the most that any feature tells of samples in orders in which nothing can be
/// learnt, in the mean.
fn best_alone(rows: &[Vec<f64>], of: &[usize], alone: &[usize], rng: &mut Rng) -> Vec<f64> {
    let kinds = counts(of).len();
    let bins = (of.len() / BIN_SAMPLES / kinds).clamp(1, BINS_MAX) * kinds;
    let column = |place: &usize| rows.iter().map(|row| row[*place]).collect::<Vec<f64>>();
    let binned: Vec<Vec<usize>> =
        alone.iter().map(|place| classes(&column(place), bins.max(2))).collect();
    let most = |of: &[usize]| {
        let told = binned.iter().enumerate().map(|(place, binned)| (mutual(binned, of), place));
        told.max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let Some((found, best)) = most(of) else { return vec![0.0; of.len()] };
    let mut shuffled = of.to_vec();
    let by_chance: f64 = (0..SHUFFLES)
        .map(|_| {
            shuffle(&mut shuffled, rng);
            most(&shuffled).map_or(0.0, |(told, _)| told)
        })
        .sum();
    let told = pointwise(&binned[best], of);
    let plain = told.iter().sum::<f64>() / told.len() as f64;
    let correction = found - by_chance / SHUFFLES as f64 - plain;
    told.into_iter().map(|told| told + correction).collect()
}

/// The bits that each sample's feature tells of its own class.
fn pointwise(a: &[usize], b: &[usize]) -> Vec<f64> {
    let n = a.len() as f64;
    let joint = paired(a, b);
    let shares = [counts(a), counts(b), counts(&joint)];
    let share = |of: usize, class: usize| shares[of][class] as f64 / n;
    let told = a.iter().zip(b).zip(&joint);
    told.map(|((a, b), joint)| (share(2, *joint) / share(0, *a) / share(1, *b)).log2()).collect()
}

fn paired(a: &[usize], b: &[usize]) -> Vec<usize> {
    let width = b.iter().max().map_or(1, |most| most + 1);
    a.iter().zip(b).map(|(a, b)| a * width + b).collect()
}

/// What each sample adds to a lower bound of mutual information: entropy less the cross entropy of a forest's guesses at
/// samples of a stretch from which it has not learnt.
fn together(rows: &[Vec<f64>], of: &[usize], rng: &mut Rng) -> Vec<f64> {
    let whole = entropy(of);
    let guesses = guesses(rows, of, rng);
    guesses.iter().zip(of).map(|(shares, class)| whole + shares[*class].log2()).collect()
}

/// How likely each class is for each sample, learnt from all other stretches.
pub(crate) fn guesses(rows: &[Vec<f64>], of: &[usize], rng: &mut Rng) -> Vec<Vec<f64>> {
    let (n, kinds) = (rows.len(), counts(of).len());
    let fold = |place: usize| place * FOLDS / n.max(1);
    let mut all = Vec::with_capacity(n);
    for tried in 0..FOLDS {
        let others: Vec<usize> = (0..n).filter(|place| fold(*place) != tried).collect();
        let step = others.len().div_ceil(GROWN_MAX).max(1);
        // Of many samples some at random places, so that no rhythm of theirs decides which.
        let learnt: Vec<usize> = others
            .chunks(step)
            .map(|chunk| chunk[rng.below(chunk.len() as u64) as usize])
            .collect();
        let from: Vec<&[f64]> = learnt.iter().map(|place| rows[*place].as_slice()).collect();
        let kind: Vec<usize> = learnt.iter().map(|place| of[*place]).collect();
        let forest = Forest::grow(&from, &kind, kinds, rng);
        let own = (0..n).filter(|place| fold(*place) == tried);
        all.extend(own.map(|place| forest.shares(&rows[place])));
    }
    all
}

fn mutual(a: &[usize], b: &[usize]) -> f64 {
    let joint = paired(a, b);
    let bias = |classes: &[usize]| {
        let used = counts(classes).into_iter().filter(|count| *count > 0).count();
        (used as f64 - 1.0) / (2.0 * classes.len() as f64 * core::f64::consts::LN_2)
    };
    let whole = |classes: &[usize]| entropy(classes) + bias(classes);
    whole(a) + whole(b) - whole(&joint)
}

pub(crate) fn shuffle<T>(values: &mut [T], rng: &mut Rng) {
    for end in (1..values.len()).rev() {
        values.swap(end, rng.below(end as u64 + 1) as usize);
    }
}

/// How well the features tell the samples of this kind from others: the area under the curve, 0.5 by chance and 1 at
/// best. The better of a forest's guesses, and of one feature chosen on every second stretch and tried on the others.
pub(crate) fn told_apart(rows: &[Vec<f64>], kind: &[bool], rng: &mut Rng) -> Estimate {
    let of: Vec<usize> = kind.iter().map(|kind| usize::from(*kind)).collect();
    if rows.len() < 2 * FOLDS || counts(&of).len() < 2 {
        return Estimate { value: 0.5, low: 0.5, high: 0.5 };
    }
    let by_forest: Vec<f64> = guesses(rows, &of, rng).iter().map(|shares| shares[1]).collect();
    let by_forest = Estimate::of(rows.len(), rng, |picked| on(picked, &by_forest, kind));
    let (learn, tried): (Vec<usize>, Vec<usize>) =
        (0..rows.len()).partition(|place| (place * 2 * FOLDS / rows.len()).is_multiple_of(2));
    let column = |column: usize| rows.iter().map(|row| row[column]).collect::<Vec<f64>>();
    let best = (0..rows[0].len()).map(|place| (on(&learn, &column(place), kind), place));
    let best = best.max_by(|a, b| (a.0 - 0.5).abs().total_cmp(&(b.0 - 0.5).abs()));
    let Some((learnt, best)) = best else { return by_forest };
    let way = if learnt < 0.5 { -1.0 } else { 1.0 };
    let values: Vec<f64> = column(best).iter().map(|value| way * value).collect();
    let by_one = Estimate::of(tried.len(), rng, |picked| {
        let picked: Vec<usize> = picked.iter().map(|place| tried[*place]).collect();
        on(&picked, &values, kind)
    });
    if by_one.value > by_forest.value { by_one } else { by_forest }
}

/// The area for these samples alone.
fn on(places: &[usize], values: &[f64], kind: &[bool]) -> f64 {
    let values: Vec<f64> = places.iter().map(|place| values[*place]).collect();
    let kinds: Vec<bool> = places.iter().map(|place| kind[*place]).collect();
    area(&values, &kinds)
}

/// How often a sample of the kind has a greater value than one that is not; half for equal ones.
fn area(values: &[f64], kind: &[bool]) -> f64 {
    let mut sorted: Vec<(f64, bool)> = values.iter().copied().zip(kind.iter().copied()).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut wins, mut below) = (0.0, 0.0);
    for equal in sorted.chunk_by(|a, b| a.0 == b.0) {
        let inside = equal.iter().filter(|(_, kind)| *kind).count() as f64;
        let outside = equal.len() as f64 - inside;
        wins += inside * (below + outside / 2.0);
        below += outside;
    }
    let pairs = below * (values.len() as f64 - below);
    if pairs == 0.0 { 0.5 } else { wins / pairs }
}

/// A guess at a whole number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Guess {
    /// How far off it is.
    pub error: f64,
    pub is_right: bool,
}

/// Guesses at whole numbers by least squares from these features, each from all other samples.
pub(crate) fn guess(rows: &[Vec<f64>], of: &[f64]) -> Vec<Guess> {
    let n = rows.len();
    let guess = |place: usize| {
        let rest = (0..n).filter(|other| *other != place);
        let weights = least_squares(rest.map(|other| (&rows[other][..], of[other])));
        let guess = weights.first().copied().unwrap_or(0.0)
            + rows[place].iter().zip(weights.iter().skip(1)).map(|(x, w)| x * w).sum::<f64>();
        let is_right = (guess.round() - of[place]).abs() < 0.5;
        Guess { error: (guess - of[place]).abs(), is_right }
    };
    (0..n).map(guess).collect()
}

/// Of ways to guess the one that does best, chosen for each stretch on all others: the best of many on the samples that they
/// are judged by would be better by chance.
pub(crate) fn best_guesses(ways: &[Vec<Guess>]) -> Vec<Guess> {
    let n = ways.first().map_or(0, Vec::len);
    let fold = |place: usize| place * FOLDS / n.max(1);
    let best = |tried: usize| {
        let sum = |way: &Vec<Guess>| -> f64 {
            let others = way.iter().enumerate().filter(|(place, _)| fold(*place) != tried);
            others.map(|(_, guess)| guess.error).sum()
        };
        ways.iter().min_by(|a, b| sum(a).total_cmp(&sum(b)))
    };
    let chosen: Vec<Option<&Vec<Guess>>> = (0..FOLDS).map(best).collect();
    (0..n).filter_map(|place| Some(chosen[fold(place)]?[place])).collect()
}

/// The constant and the weight of each feature.
fn least_squares<'a>(samples: impl Iterator<Item = (&'a [f64], f64)>) -> Vec<f64> {
    let mut table: Vec<Vec<f64>> = Vec::new();
    for (row, value) in samples {
        let row: Vec<f64> = core::iter::once(1.0).chain(row.iter().copied()).collect();
        table.resize(row.len(), vec![0.0; row.len() + 1]);
        for (a, line) in row.iter().zip(&mut table) {
            line.iter_mut().zip(row.iter().chain([&value])).for_each(|(sum, b)| *sum += a * b);
        }
    }
    let width = table.len();
    for pivot in 0..width {
        // Features that are always the same get no weight.
        table[pivot][pivot] += 1e-9;
        for line in 0..width {
            if line != pivot {
                let by = table[line][pivot] / table[pivot][pivot];
                let from = table[pivot].clone();
                table[line].iter_mut().zip(&from).for_each(|(to, from)| *to -= by * from);
            }
        }
    }
    (0..width).map(|place| table[place][width] / table[place][place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(rng: &mut Rng) -> f64 {
        rng.below(1_000_000) as f64 / 1e6
    }

    /// Eight classes by chance, and a feature that is one of them this often.
    fn samples(told: u64) -> (Vec<Vec<f64>>, Vec<usize>, Rng) {
        let mut rng = Rng::new(7);
        let (mut rows, mut of) = (Vec::new(), Vec::new());
        for _ in 0..600 {
            let class = rng.below(8) as usize;
            let shown = if rng.below(100) < told { class as f64 } else { 8.0 * noise(&mut rng) };
            rows.push(vec![shown, noise(&mut rng)]);
            of.push(class);
        }
        (rows, of, rng)
    }

    #[test]
    fn bits_are_found_and_none_where_there_are_none() {
        for (told, least, most) in [(0, 0.0, 0.06), (100, 2.5, 3.1), (50, 0.6, 1.6)] {
            let (rows, of, mut rng) = samples(told);
            let found = bits(&rows, &of, &[0, 1], &mut rng).value;
            assert!((least..=most).contains(&found), "{told} %: {found}");
        }
    }

    #[test]
    fn kinds_are_told_apart_by_what_differs() {
        let mut rng = Rng::new(3);
        let kind: Vec<bool> = (0..400).map(|_| rng.below(2) == 1).collect();
        let rows = |shift: f64, rng: &mut Rng| -> Vec<Vec<f64>> {
            let row = |kind: &bool| vec![noise(rng), noise(rng) + if *kind { shift } else { 0.0 }];
            kind.iter().map(row).collect()
        };
        for (shift, least, most) in [(0.0, 0.4, 0.58), (0.5, 0.8, 0.95), (1.1, 0.99, 1.0)] {
            let found = told_apart(&rows(shift, &mut rng), &kind, &mut rng).value;
            assert!((least..=most).contains(&found), "{shift}: {found}");
        }
    }

    #[test]
    fn numbers_are_guessed_by_least_squares() {
        let mut rng = Rng::new(3);
        let of: Vec<f64> = (0..60).map(|_| rng.within(6, 20) as f64).collect();
        let plain: Vec<Vec<f64>> = of.iter().map(|length| vec![3.0 * length + 2.0, 5.0]).collect();
        let told = |guesses: &[Guess]| {
            let n = guesses.len() as f64;
            let right = guesses.iter().filter(|guess| guess.is_right).count();
            (guesses.iter().map(|guess| guess.error).sum::<f64>() / n, right as f64 / n)
        };
        let plain = guess(&plain, &of);
        let (error, right) = told(&plain);
        assert!(error < 1e-3 && right > 0.99, "{error} {right}");
        let blind = |rng: &mut Rng| -> Vec<Guess> {
            let rows: Vec<Vec<f64>> = of.iter().map(|_| vec![noise(rng), 5.0]).collect();
            guess(&rows, &of)
        };
        let (error, right) = told(&blind(&mut rng));
        assert!(error > 2.5 && right < 0.3, "{error} {right}");
        // The best of many blind ones is no better than one of them; one that knows is chosen.
        let mut ways: Vec<Vec<Guess>> = (0..12).map(|_| blind(&mut rng)).collect();
        let (chosen, _) = told(&best_guesses(&ways));
        let mean = ways.iter().map(|way| told(way).0).sum::<f64>() / ways.len() as f64;
        assert!((chosen - mean).abs() < 0.4, "{chosen} {mean}");
        ways.push(plain.clone());
        assert_eq!(best_guesses(&ways), plain);
    }
}
