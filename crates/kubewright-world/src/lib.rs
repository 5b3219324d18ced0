//! The world that a control plane and its operators live in: a [`Clock`] and [`Dice`].
//!
//! Nothing in Kubewright reads the machine's clock or its randomness by itself; it is handed a [`World`]. The real
//! world is made by [`World::real`] alone. A simulated one ([`World::simulated`]) takes its time from tokio, so under
//! tokio's paused clock an hour passes at once, and rolls its dice from a seed, so a run can be had again. Between the two
//! is a [paced](Pacing) clock: of a server that others reach over sockets, and whose time is in somebody's hand.

mod clock;
mod dice;
mod pacing;
mod simulation;
mod standstill;

#[allow(deprecated)]
pub use clock::ClockHand;
pub use clock::{Clock, ClockSkew, SIMULATION_START};
pub use dice::Dice;
pub use pacing::{BadPacing, Ended, Pacer, Pacing};
pub use simulation::Simulation;
pub use standstill::TooLong;

/// A clock and dice, cheap to clone; clones share the dice.
#[derive(Clone, Debug)]
pub struct World {
    /// Tells the time.
    pub clock: Clock,
    /// Gives random numbers.
    pub dice: Dice,
}

impl World {
    /// The machine's clock and entropy.
    #[must_use]
    pub fn real() -> Self {
        Self { clock: Clock::system(), dice: Dice::from_entropy() }
    }

    /// The machine's clock with dice that start from `seed`: names and uids repeat, times do not.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { clock: Clock::system(), dice: Dice::from_seed(seed) }
    }

    /// Time that follows tokio's clock from a fixed start ([`SIMULATION_START`]) and dice that start from `seed`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn simulated(seed: u64) -> Self {
        Self { clock: Clock::simulated(), dice: Dice::from_seed(seed) }
    }

    /// The proof that this world is a simulation with nobody outside; `None` for a real one, and for one that others reach
    /// over sockets.
    #[must_use]
    pub fn simulation(&self) -> Option<Simulation> {
        self.clock.is_simulated().then(|| Simulation::of(self.dice.clone()))
    }
}
