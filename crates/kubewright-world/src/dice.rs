//! Where randomness comes from.

use std::sync::Arc;

use parking_lot::Mutex;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The letters of Kubernetes' generated names: no vowels and no look-alikes, so no words arise
/// (`k8s.io/apimachinery/pkg/util/rand`).
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A source of random numbers; clones share one sequence.
#[derive(Clone)]
pub struct Dice(Arc<Mutex<ChaCha8Rng>>);

impl Dice {
    /// A sequence that `seed` decides, the same on every machine.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(seed))))
    }

    /// A sequence that nobody can foresee.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's entropy")]
    pub fn from_entropy() -> Self {
        Self(Arc::new(Mutex::new(ChaCha8Rng::from_rng(&mut rand::rng()))))
    }

    /// Fills `bytes`.
    pub fn fill(&self, bytes: &mut [u8]) {
        self.0.lock().fill_bytes(bytes);
    }

    /// A number below `bound`.
    ///
    /// # Panics
    /// When `bound` is 0.
    #[must_use]
    pub fn below(&self, bound: usize) -> usize {
        self.0.lock().random_range(0..bound)
    }

    /// A number from 0 (included) to 1 (excluded).
    #[must_use]
    pub fn fraction(&self) -> f64 {
        self.0.lock().random()
    }

    /// A version 4 UUID in its usual spelling, for `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> String {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// `length` letters as Kubernetes appends them to `generateName`.
    #[must_use]
    pub fn suffix(&self, length: usize) -> String {
        (0..length).map(|_| char::from(NAME_LETTERS[self.below(NAME_LETTERS.len())])).collect()
    }
}

impl std::fmt::Debug for Dice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dice")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_uids_and_names() {
        let roll = |seed| {
            let dice = Dice::from_seed(seed);
            (dice.uid(), dice.suffix(5), dice.below(1000))
        };
        assert_eq!(roll(7), roll(7));
        assert_ne!(roll(7), roll(8));
    }
}
