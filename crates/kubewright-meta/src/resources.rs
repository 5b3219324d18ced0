//! Amounts of resources, by name (`corev1.ResourceList` and the arithmetic of `k8s.io/apiserver/pkg/quota/v1`).

use std::collections::BTreeMap;

use crate::quantity::Quantity;
use serde_json::{Map, Value};

/// Amounts by the names of resources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources(BTreeMap<String, Quantity>);

impl Resources {
    /// The amounts of a map of quantities; what is no quantity is passed over.
    pub fn of(map: &Value) -> Self {
        let entries = map.as_object().into_iter().flatten();
        Self(entries.filter_map(|(name, value)| Some((name.clone(), Quantity::of(value)?))).collect())
    }

    /// Nothing of each of these.
    pub fn zero<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self(names.map(|name| (name.to_owned(), Quantity::ZERO)).collect())
    }

    /// As an object has it.
    pub fn to_value(&self) -> Value {
        Value::Object(
            self.0
                .iter()
                .map(|(name, amount)| (name.clone(), amount.to_string().into()))
                .collect::<Map<_, _>>(),
        )
    }

    /// The amount of one.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    /// Sets the amount of one.
    pub fn set(&mut self, name: impl Into<String>, amount: Quantity) {
        self.0.insert(name.into(), amount);
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The names and amounts, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Both together.
    pub fn plus(mut self, other: &Self) -> Self {
        for (name, amount) in &other.0 {
            let sum = self.0.get(name).map_or(*amount, |own| *own + *amount);
            self.0.insert(name.clone(), sum);
        }
        self
    }

    /// What is more than in another; nothing where it is less.
    pub fn beyond(&self, other: &Self) -> Self {
        let left = |(name, amount): (&String, &Quantity)| {
            let rest = other.0.get(name).map_or(*amount, |other| *amount - *other);
            (name.clone(), if rest.sign().is_gt() { rest } else { Quantity::ZERO })
        };
        Self(self.0.iter().map(left).collect())
    }

    /// The greater of both, for each.
    pub fn at_least(mut self, other: &Self) -> Self {
        for (name, amount) in &other.0 {
            if self.0.get(name).is_none_or(|own| amount > own) {
                self.0.insert(name.clone(), *amount);
            }
        }
        self
    }

    /// Those that another has too.
    pub fn only(&self, of: &Self) -> Self {
        self.filter(|name, _| of.0.contains_key(name))
    }

    /// Those of which there is something.
    pub fn without_zeros(&self) -> Self {
        self.filter(|_, amount| amount.sign().is_ne())
    }

    /// Those that satisfy a condition.
    pub fn filter(&self, keep: impl Fn(&str, Quantity) -> bool) -> Self {
        Self(
            self.0
                .iter()
                .filter(|(name, amount)| keep(name, **amount))
                .map(|(name, amount)| (name.clone(), *amount))
                .collect(),
        )
    }

    /// Takes over the amounts of another.
    pub fn replace(&mut self, by: Self) {
        self.0.extend(by.0);
    }
}

/// As messages list them: `cpu=1,memory=2Gi`.
impl std::fmt::Display for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (name, amount)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={amount}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}
