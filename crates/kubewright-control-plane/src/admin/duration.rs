//! Durations in JSON, as Go writes them: `"1h30m"`.

use std::time::Duration;

use kubewright_meta::duration::parse_or_none;
use serde::{Deserialize, Deserializer, Serializer, de};

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(input)?;
    if text.starts_with('-') {
        return Err(de::Error::custom(format!("the duration {text:?} is negative")));
    }
    parse_or_none(&text)
        .map_err(|why| de::Error::custom(format!("{why}: durations are written as \"1h30m\" or \"250ms\"")))
}

pub(super) fn serialize<S: Serializer>(duration: &Duration, output: S) -> Result<S::Ok, S::Error> {
    output.serialize_str(&format!("{}s", duration.as_secs_f64()))
}

/// The same for a duration that may be missing.
pub(super) mod option {
    use super::{Deserializer, Duration, Serializer};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
        super::deserialize(input).map(Some)
    }

    pub(crate) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        output: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, output),
            None => output.serialize_none(),
        }
    }
}
