//! What only a simulation may do.

use crate::Dice;

/// The proof that a world is a simulation ([`World::simulation`](crate::World::simulation) alone gives it). Whoever makes
/// keys from a seed takes one of these, so that no key of a real world can be foreseen.
#[derive(Clone, Debug)]
pub struct Simulation {
    dice: Dice,
}

impl Simulation {
    pub(crate) fn of(dice: Dice) -> Self {
        Self { dice }
    }

    /// A private key of Ed25519, in PKCS #8 (RFC 8410, without the public half), that the seed decides. Its signatures
    /// are a function of what is signed: of the usual algorithms, the only one of which keys are any 32 bytes.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        /// Version 0, the algorithm 1.3.101.112, and 32 bytes in an octet string in an octet string.
        const HEAD: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
        let mut seed = [0; 32];
        self.dice.fill(&mut seed);
        [HEAD.as_slice(), &seed].concat()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Pacing, World};

    #[tokio::test(start_paused = true)]
    async fn the_seed_decides_a_simulations_keys() {
        let key = |seed| World::simulated(seed).simulation().expect("a simulation").key();
        assert_eq!(key(7), key(7));
        assert_ne!(key(7), key(8));
        assert_eq!(key(7).len(), 48);
    }

    #[test]
    fn a_world_with_somebody_outside_is_no_simulation() {
        assert!(World::real().simulation().is_none());
        assert!(World::seeded(7).simulation().is_none());
        let runtime = Pacing::runtime().expect("a runtime");
        runtime.block_on(async {
            let pacing: Pacing = "speed=0".parse().expect("a pacing");
            let (clock, _pacer) = pacing.begin(std::future::ready(()));
            assert!(World { clock, ..World::seeded(7) }.simulation().is_none());
        });
    }
}
