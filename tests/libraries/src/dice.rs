//! What is made by chance, and always the same of a seed.

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A source of chance.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    /// That of a seed of a subject.
    pub(crate) fn of(subject: &str, seed: u64) -> Self {
        let name = subject.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        Self(ChaCha8Rng::seed_from_u64(name.wrapping_mul(1_000_003).wrapping_add(seed)))
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound)
    }

    /// Whether what happens `percent` times of a hundred does.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    /// One of several.
    ///
    /// # Panics
    /// Where there is none.
    pub(crate) fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of.choose(&mut self.0).expect("one of several")
    }

    /// One of several words.
    pub(crate) fn word(&mut self, of: &[&str]) -> String {
        self.one(of).to_owned()
    }

    /// A text of up to `most` of these pieces.
    pub(crate) fn text(&mut self, most: usize, of: &[&str]) -> String {
        (0..self.below(most + 1)).map(|_| self.one(of)).collect()
    }

    /// A text with up to two characters taken away, doubled or put in.
    pub(crate) fn spoiled(&mut self, text: &str, by: &[&str]) -> String {
        let mut characters: Vec<String> = text.chars().map(String::from).collect();
        for _ in 0..self.below(3) {
            let at = self.below(characters.len() + 1);
            match self.below(3) {
                0 if at < characters.len() => drop(characters.remove(at)),
                1 if at < characters.len() => characters.insert(at, characters[at].clone()),
                _ => characters.insert(at, self.word(by)),
            }
        }
        characters.concat()
    }
}
