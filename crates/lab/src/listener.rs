//! A listener's guesses as numbers: how many bits features tell of a class, how well they tell two kinds apart, and how
//! far off a guess at a number is. The caller chooses the features.

use crate::rng::Rng;

/// The value of a feature that is not there.
pub(crate) const NEVER: f64 = 99.0;

/// Neighbours that vote.
const NEIGHBOURS: usize = 15;
/// Stretches of samples that are guessed in turn from all others.
const FOLDS: usize = 5;
/// Orders in which nothing can be learnt, whose mean is what an estimate shows by chance.
const SHUFFLES: usize = 20;
/// Bins of a feature, and samples for each.
const BINS_MAX: usize = 24;
const BIN_SAMPLES: usize = 30;

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

/// Bits that the features tell of the classes: the most that any of `alone` tells by itself, or all of them together.
/// Never below zero.
pub(crate) fn bits(rows: &[Vec<f64>], classes: &[usize], alone: &[usize], rng: &mut Rng) -> f64 {
    let column = |place: usize| rows.iter().map(|row| row[place]).collect::<Vec<f64>>();
    let single = alone.iter().map(|place| plug_in(&column(*place), classes, rng));
    single.fold(neighbours_bits(rows, classes), f64::max).max(0.0)
}

/// The plug-in estimate of mutual information, corrected by Miller and Madow, less its mean over shuffled samples.
fn plug_in(values: &[f64], of: &[usize], rng: &mut Rng) -> f64 {
    let bins = (values.len() / BIN_SAMPLES).clamp(2, BINS_MAX);
    let mut binned = classes(values, bins);
    let found = mutual(&binned, of);
    let by_chance: f64 = (0..SHUFFLES)
        .map(|_| {
            shuffle(&mut binned, rng);
            mutual(&binned, of)
        })
        .sum();
    found - by_chance / SHUFFLES as f64
}

fn mutual(a: &[usize], b: &[usize]) -> f64 {
    let width = b.iter().max().map_or(1, |most| most + 1);
    let joint: Vec<usize> = a.iter().zip(b).map(|(a, b)| a * width + b).collect();
    let bias = |classes: &[usize]| {
        let used = counts(classes).into_iter().filter(|count| *count > 0).count();
        (used as f64 - 1.0) / (2.0 * classes.len() as f64 * core::f64::consts::LN_2)
    };
    let whole = |classes: &[usize]| entropy(classes) + bias(classes);
    whole(a) + whole(b) - whole(&joint)
}

fn shuffle(values: &mut [usize], rng: &mut Rng) {
    for end in (1..values.len()).rev() {
        values.swap(end, rng.below(end as u64 + 1) as usize);
    }
}

/// A lower bound of mutual information: entropy less the cross entropy of neighbours' guesses at samples of other
/// stretches.
fn neighbours_bits(rows: &[Vec<f64>], of: &[usize]) -> f64 {
    let n = rows.len();
    let prior: Vec<f64> = counts(of).into_iter().map(|count| count as f64 / n as f64).collect();
    let told: f64 = votes(rows)
        .iter()
        .zip(of)
        .map(|(near, class)| {
            let same = near.iter().filter(|place| of[**place] == *class).count() as f64;
            // As if a few more neighbours voted as all samples do.
            let weight = NEIGHBOURS as f64 / 3.0;
            ((same + weight * prior[*class]) / (near.len() as f64 + weight)).log2()
        })
        .sum();
    entropy(of) + told / n.max(1) as f64
}

/// For each sample its nearest ones outside of its stretch, on features of one scale.
fn votes(rows: &[Vec<f64>]) -> Vec<Vec<usize>> {
    let scaled = scaled(rows);
    let n = rows.len();
    let fold = |place: usize| place * FOLDS / n.max(1);
    (0..n)
        .map(|place| {
            let mut near: Vec<(f64, usize)> = (0..n)
                .filter(|other| fold(*other) != fold(place))
                .map(|other| (distance(&scaled[place], &scaled[other]), other))
                .collect();
            near.sort_by(|a, b| a.0.total_cmp(&b.0));
            near.into_iter().take(NEIGHBOURS).map(|(_, other)| other).collect()
        })
        .collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

fn scaled(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = rows.len().max(1) as f64;
    let width = rows.first().map_or(0, Vec::len);
    let scales: Vec<(f64, f64)> = (0..width)
        .map(|place| {
            let mean = rows.iter().map(|row| row[place]).sum::<f64>() / n;
            let square = rows.iter().map(|row| (row[place] - mean).powi(2)).sum::<f64>() / n;
            (mean, if square > 0.0 { square.sqrt() } else { 1.0 })
        })
        .collect();
    let scale =
        |row: &Vec<f64>| row.iter().zip(&scales).map(|(x, (mean, by))| (x - mean) / by).collect();
    rows.iter().map(scale).collect()
}

/// How well the features tell the samples of this kind from others: the area under the curve, 0.5 by chance and 1 at
/// best. The better of neighbours' votes, and of one feature chosen on every second stretch and tried on the others.
pub(crate) fn told_apart(rows: &[Vec<f64>], kind: &[bool]) -> f64 {
    let near = votes(rows);
    let share = |near: &Vec<usize>| near.iter().filter(|place| kind[**place]).count() as f64;
    let by_votes = area(&near.iter().map(share).collect::<Vec<f64>>(), kind);
    let (learn, tried): (Vec<usize>, Vec<usize>) = (0..rows.len())
        .partition(|place| (place * 2 * FOLDS / rows.len().max(1)).is_multiple_of(2));
    let on = |places: &[usize], column: usize| {
        let values: Vec<f64> = places.iter().map(|place| rows[*place][column]).collect();
        let kinds: Vec<bool> = places.iter().map(|place| kind[*place]).collect();
        area(&values, &kinds)
    };
    let width = rows.first().map_or(0, Vec::len);
    let best = (0..width).map(|column| (on(&learn, column), column));
    let best = best.max_by(|a, b| (a.0 - 0.5).abs().total_cmp(&(b.0 - 0.5).abs()));
    let by_one = best.map_or(0.5, |(learnt, column)| {
        let found = on(&tried, column);
        if learnt < 0.5 { 1.0 - found } else { found }
    });
    by_votes.max(by_one)
}

/// How often a sample of the kind has a greater value than one that is not; half for equal ones.
fn area(values: &[f64], kind: &[bool]) -> f64 {
    let pick = |wanted: bool| {
        let all = values.iter().zip(kind).filter(move |(_, kind)| **kind == wanted);
        all.map(|(value, _)| *value).collect::<Vec<f64>>()
    };
    let (inside, outside) = (pick(true), pick(false));
    let pairs = inside.len() * outside.len();
    let above = |one: &f64| {
        let wins = |other: &f64| match one.total_cmp(other) {
            core::cmp::Ordering::Greater => 1.0,
            core::cmp::Ordering::Equal => 0.5,
            core::cmp::Ordering::Less => 0.0,
        };
        outside.iter().map(wins).sum::<f64>()
    };
    if pairs == 0 { 0.5 } else { inside.iter().map(above).sum::<f64>() / pairs as f64 }
}

/// The mean error of guesses at whole numbers by least squares from these features, each from all other samples, and
/// the share that is right.
pub(crate) fn guess_error(rows: &[Vec<f64>], of: &[f64]) -> (f64, f64) {
    let n = rows.len();
    let (mut error, mut right) = (0.0, 0);
    for place in 0..n {
        let rest = || (0..n).filter(|other| *other != place);
        let weights = least_squares(rest().map(|other| (&rows[other][..], of[other])));
        let guess = weights.first().copied().unwrap_or(0.0)
            + rows[place].iter().zip(weights.iter().skip(1)).map(|(x, w)| x * w).sum::<f64>();
        error += (guess - of[place]).abs();
        right += usize::from((guess.round() - of[place]).abs() < 0.5);
    }
    (error / n.max(1) as f64, right as f64 / n.max(1) as f64)
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
            let found = bits(&rows, &of, &[0, 1], &mut rng);
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
            let found = told_apart(&rows(shift, &mut rng), &kind);
            assert!((least..=most).contains(&found), "{shift}: {found}");
        }
    }

    #[test]
    fn numbers_are_guessed_by_least_squares() {
        let mut rng = Rng::new(3);
        let of: Vec<f64> = (0..60).map(|_| rng.within(6, 20) as f64).collect();
        let plain: Vec<Vec<f64>> = of.iter().map(|length| vec![3.0 * length + 2.0, 5.0]).collect();
        let (error, right) = guess_error(&plain, &of);
        assert!(error < 1e-3 && right > 0.99, "{error} {right}");
        let blind: Vec<Vec<f64>> = of.iter().map(|_| vec![noise(&mut rng), 5.0]).collect();
        let (error, right) = guess_error(&blind, &of);
        assert!(error > 2.5 && right < 0.3, "{error} {right}");
    }
}
