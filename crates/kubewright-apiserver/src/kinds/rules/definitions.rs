//! Definitions of custom resources: the engine asks `schema::definition` for the rest, which needs to know the others.

use super::{Again, Generation, Rules};
use crate::schema::definition;

/// The rules of definitions.
pub(crate) const fn rules() -> Rules {
    Rules {
        generation: Generation::Content,
        again: Again::Metadata,
        prepare_create: definition::begin,
        prepare_update: |definition, _| definition::store(definition),
        ..Rules::none()
    }
}
