//! Guesses classes from features by a forest of random trees: each split is the best of a few at random, so that neither the
//! scale of a feature nor features that tell nothing matter. The same chances grow the same forest.

use crate::rng::Rng;

/// Trees of a forest.
const TREES: usize = 32;
/// Splits of which the best is taken.
const TRIES: usize = 12;
/// Samples of a leaf at least, and splits above it at most.
const LEAF_MIN: usize = 4;
const DEPTH_MAX: usize = 14;

/// Trees that vote.
pub(super) struct Forest {
    trees: Vec<Vec<Node>>,
    prior: Vec<f64>,
}

enum Node {
    /// Samples with a value up to this go to the first of these nodes, all others to the second.
    Split { column: usize, at: f64, next: [usize; 2] },
    /// The share of each class.
    Leaf(Vec<f64>),
}

/// What a tree grows from.
struct Ground<'a> {
    rows: &'a [&'a [f64]],
    of: &'a [usize],
    prior: &'a [f64],
}

impl Forest {
    /// Grows a forest of these samples, each of one of `count` classes.
    pub(super) fn grow(rows: &[&[f64]], of: &[usize], count: usize, rng: &mut Rng) -> Forest {
        let n = of.len().max(1) as f64;
        // No class is impossible because it was never seen.
        let mut prior = vec![0.5 / (n + 0.5 * count as f64); count];
        of.iter().for_each(|class| prior[*class] += 1.0 / (n + 0.5 * count as f64));
        let ground = Ground { rows, of, prior: &prior };
        let trees = (0..TREES).map(|_| {
            let mut nodes = Vec::new();
            ground.grow(&mut nodes, (0..rows.len()).collect(), 0, rng);
            nodes
        });
        Forest { trees: trees.collect(), prior }
    }

    /// How likely each class is for a sample.
    pub(super) fn shares(&self, row: &[f64]) -> Vec<f64> {
        let mut sum: Vec<f64> = self.prior.iter().map(|share| share * DOUBT).collect();
        let weight = (1.0 - DOUBT) / self.trees.len() as f64;
        for nodes in &self.trees {
            let mut place = 0;
            let leaf = loop {
                match &nodes[place] {
                    Node::Leaf(shares) => break shares,
                    Node::Split { column, at, next } => {
                        place = next[usize::from(row[*column] > *at)];
                    }
                }
            };
            sum.iter_mut().zip(leaf).for_each(|(sum, share)| *sum += weight * share);
        }
        sum
    }
}

/// How much the shares of all samples count beside those of a leaf.
const DOUBT: f64 = 0.02;

impl Ground<'_> {
    /// Adds the node of these samples, and those below it. Returns its place.
    fn grow(&self, nodes: &mut Vec<Node>, here: Vec<usize>, depth: usize, rng: &mut Rng) -> usize {
        let place = nodes.len();
        nodes.push(Node::Leaf(self.leaf(&here)));
        let is_pure = here.windows(2).all(|two| self.of[two[0]] == self.of[two[1]]);
        if is_pure || here.len() < 2 * LEAF_MIN || depth == DEPTH_MAX {
            return place;
        }
        let tried = (0..TRIES).filter_map(|_| self.try_split(&here, rng));
        let Some((_, column, at)) = tried.max_by(|a, b| a.0.total_cmp(&b.0)) else { return place };
        let (below, above): (Vec<usize>, Vec<usize>) =
            here.into_iter().partition(|sample| self.rows[*sample][column] <= at);
        let next = [below, above].map(|part| self.grow(nodes, part, depth + 1, rng));
        nodes[place] = Node::Split { column, at, next };
        place
    }

    /// A split at random, and by how much it orders the classes; the less the better.
    fn try_split(&self, here: &[usize], rng: &mut Rng) -> Option<(f64, usize, f64)> {
        let column = rng.below(self.rows[here[0]].len() as u64) as usize;
        let at = self.rows[here[rng.below(here.len() as u64) as usize]][column];
        let mut counts = vec![[0_u32; 2]; self.prior.len()];
        let mut sums = [0_u32; 2];
        for sample in here {
            let side = usize::from(self.rows[*sample][column] > at);
            counts[self.of[*sample]][side] += 1;
            sums[side] += 1;
        }
        if sums.iter().any(|sum| (*sum as usize) < LEAF_MIN) {
            return None;
        }
        let ordered = counts.iter().flatten().filter(|count| **count > 0);
        let ordered: f64 = ordered.map(|count| f64::from(*count) * f64::from(*count).ln()).sum();
        let whole: f64 = sums.iter().map(|sum| f64::from(*sum) * f64::from(*sum).ln()).sum();
        Some((ordered - whole, column, at))
    }

    fn leaf(&self, here: &[usize]) -> Vec<f64> {
        let mut shares = self.prior.to_vec();
        here.iter().for_each(|sample| shares[self.of[*sample]] += 1.0);
        let whole = here.len() as f64 + 1.0;
        shares.iter_mut().for_each(|share| *share /= whole);
        shares
    }
}
