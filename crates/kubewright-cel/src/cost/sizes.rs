//! Ranges of sizes and costs (cel-go's checker/cost.go).

/// What something costs at least and at most. The most is `u64::MAX` if there is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostEstimate {
    /// At least.
    pub min: u64,
    /// At most.
    pub max: u64,
}

/// How large something is at least and at most; counted as costs are.
pub(super) type Size = CostEstimate;

impl CostEstimate {
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub(super) const fn fixed(cost: u64) -> Self {
        Self { min: cost, max: cost }
    }

    pub(super) fn add(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn multiply(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Times what each unit costs, rounded up.
    pub(super) fn scale(self, factor: f64) -> Self {
        Self { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    /// The range that has both in it.
    pub(super) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// `count` times `factor`, rounded up.
pub(super) fn scale(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).ceil() as u64
}
