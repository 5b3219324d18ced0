//! The parts of the schema that Rust's types do not say.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{rule::PROTOCOLS, types::PortNumber};

/// A port as text: 0 to 65535.
const PORT: &str = "^0*(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4})$";

impl JsonSchema for PortNumber {
    fn schema_name() -> Cow<'static, str> {
        "PortNumber".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "minimum": 0,
            "maximum": 65535,
            "maxLength": 8,
            "pattern": PORT,
        })
    }
}

/// What Neutron takes as a name (`neutron_lib/db/constants.py`, `NAME_FIELD_SIZE`).
pub(crate) fn group_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 255})
}

pub(crate) fn group_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "nullable": true,
        "pattern": "^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$",
    })
}

pub(crate) fn object_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 253})
}

pub(crate) fn sync_period(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 10, "maximum": 3600, "nullable": true})
}

pub(crate) fn byte(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 255, "nullable": true})
}

/// The longest network: `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128`.
pub(crate) fn prefix(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 49, "nullable": true})
}

/// What Neutron takes as a description of a rule (`neutron_lib/db/constants.py`, `DESCRIPTION_FIELD_SIZE`).
pub(crate) fn description(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 255, "nullable": true})
}

/// The protocols in lower case, as the later manifests write them, and in upper case, as OpenStack's own pages do.
pub(crate) fn protocol(_: &mut SchemaGenerator) -> Schema {
    let lower = PROTOCOLS.iter().map(|(name, _)| (*name).to_owned());
    let upper = PROTOCOLS.iter().map(|(name, _)| name.to_uppercase());
    let names: Vec<String> = lower.chain(["any".to_owned()]).chain(upper).collect();
    json_schema!({"type": "string", "nullable": true, "enum": names})
}
