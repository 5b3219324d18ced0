//! Selectors of devices: what their expressions may name, and whether a device is what they ask for
//! (k8s.io/dynamic-resource-allocation/cel/compile.go).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json};

use crate::bindings::Bindings;
use crate::declaration::{DeclField, DeclType};
use crate::environment::Environment;
use crate::library::{Quantity, Semver};
use crate::program::Program;
use crate::types::{Type, names};
use crate::value::{Key, Map, Opaque, Text, Value};

/// Bytes of the domain of an attribute, of its name, of the name of a driver, and of a value.
const DOMAIN: u64 = 63;
const NAME: u64 = 32;
const DRIVER: u64 = 63;
const VALUE: u64 = 64;
/// How many attributes and capacities a device has.
const ENTRIES: u64 = 32;

/// A device of a resource slice, as expressions see it.
#[derive(Clone, Debug)]
pub struct Device<'a> {
    value: Value<'a>,
}

impl Environment {
    /// What selectors of devices may name: `device`, and `cel.bind`. Whether claims may share a device, they can ask where there is such
    /// a thing (the feature DRAConsumableCapacity).
    #[must_use]
    pub fn of_devices(with_shares: bool) -> Self {
        let by_domain = |values: DeclType| {
            let inner = DeclType::map(values, Some(ENTRIES)).with_keys(NAME);
            DeclType::map(inner, Some(ENTRIES)).with_keys(DOMAIN)
        };
        let quantity = DeclType::of(Type::hidden(names::QUANTITY));
        let share = DeclField::new("allowMultipleAllocations", DeclType::counted_boolean(), true);
        let fields = [
            DeclField::new("attributes", by_domain(DeclType::any(VALUE)), true),
            DeclField::new("capacity", by_domain(quantity), true),
            DeclField::new("driver", DeclType::text(DRIVER), true),
        ];
        let device = DeclType::object(fields.into_iter().chain(with_shares.then_some(share)));
        Self::new().variable("device", device.named("kubernetes.DRADevice")).bindings()
    }

    /// An expression as a selector of devices.
    ///
    /// # Errors
    ///
    /// That it does not compile, or gives neither a boolean nor what may be one, in kube-apiserver's words.
    pub fn selector(&self, expression: &str) -> Result<Program, String> {
        let program = self.compile(expression).map_err(|error| error.detail())?;
        match program.output_type() {
            Type::Bool | Type::Any => Ok(program),
            other => Err(format!("must evaluate to bool or the unknown type, not {}", declared(other))),
        }
    }
}

impl<'a> Device<'a> {
    /// The device of a driver. Names without a domain are of the driver's.
    ///
    /// # Errors
    ///
    /// The attribute that has no value of a type that is known, or a version that is none.
    pub fn new(driver: &'a str, device: &'a Json) -> Result<Self, String> {
        let mut attributes = BTreeMap::new();
        for (name, attribute) in members(device, "attributes") {
            let value = attribute_value(attribute).map_err(|why| format!("attribute {name}: {why}"))?;
            put(&mut attributes, driver, name, value);
        }
        let mut capacity = BTreeMap::new();
        for (name, amount) in members(device, "capacity") {
            let text = amount.get("value").map(shown).unwrap_or_default();
            let amount = Quantity::parse(&text).map_err(|why| format!("capacity {name}: {why}"))?;
            put(&mut capacity, driver, name, Value::Opaque(Opaque::Quantity(Arc::new(amount))));
        }
        let is_shared = device.get("allowMultipleAllocations").and_then(Json::as_bool).unwrap_or_default();
        let field = |name: &'static str, value| (Key::String(Text::Borrowed(name)), value);
        let fields = BTreeMap::from([
            field("allowMultipleAllocations", Value::Bool(is_shared)),
            field("attributes", by_domain(attributes)),
            field("capacity", by_domain(capacity)),
            field("driver", Value::String(Text::Borrowed(driver))),
        ]);
        Ok(Self { value: Value::Map(Map::new(fields)) })
    }

    /// Whether the device is what the expression asks for.
    ///
    /// # Errors
    ///
    /// What went wrong, or that the expression gives no boolean for it.
    pub fn matches(&self, selector: &Program, cost_limit: u64) -> Result<bool, String> {
        let mut bindings = Bindings::new();
        bindings.bind("device", self.value.clone());
        match selector.evaluate(&bindings, cost_limit).result {
            Ok(Value::Bool(truth)) => Ok(truth),
            Ok(other) => {
                let name = other.runtime_type();
                Err(format!(
                    "CEL result of type {0} could not be converted to bool: type conversion error from '{0}' to 'bool'",
                    name.name()
                ))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A type by the names that it was declared with (cel-go's `Type.String`).
fn declared(r#type: &Type) -> String {
    match r#type {
        Type::Any => "google.protobuf.Any".to_owned(),
        plain @ (Type::Timestamp | Type::Duration | Type::Null) => plain.name().to_owned(),
        Type::List(element) => format!("list({})", declared(element)),
        Type::Map(key, value) => format!("map({}, {})", declared(key), declared(value)),
        Type::Optional(value) => format!("optional_type({})", declared(value)),
        Type::Type(Some(of)) => format!("type({})", declared(of)),
        other => other.to_string(),
    }
}

type ByDomain<'a> = BTreeMap<&'a str, BTreeMap<Key<'a>, Value<'a>>>;

fn put<'a>(all: &mut ByDomain<'a>, driver: &'a str, name: &'a str, value: Value<'a>) {
    let (domain, id) = name.split_once('/').unwrap_or((driver, name));
    all.entry(domain).or_default().insert(Key::String(Text::Borrowed(id)), value);
}

fn by_domain(all: ByDomain<'_>) -> Value<'_> {
    let domains = all
        .into_iter()
        .map(|(domain, names)| (Key::String(Text::Borrowed(domain)), Value::Map(Map::new(names))));
    Value::Map(Map::or_empty(domains.collect()))
}

fn members<'a>(device: &'a Json, field: &str) -> impl Iterator<Item = (&'a str, &'a Json)> + use<'a> {
    let members: Option<&'a JsonMap<String, Json>> = device.get(field).and_then(Json::as_object);
    members.into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn shown(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The one value that an attribute has. Lists of values are there with the feature DRAListTypeAttributes alone, which is off.
fn attribute_value(attribute: &Json) -> Result<Value<'_>, String> {
    let field = |name: &str| attribute.get(name).filter(|value| !value.is_null());
    if let Some(number) = field("int").and_then(Json::as_i64) {
        return Ok(Value::Int(number));
    }
    if let Some(truth) = field("bool").and_then(Json::as_bool) {
        return Ok(Value::Bool(truth));
    }
    if let Some(text) = field("string").and_then(Json::as_str) {
        return Ok(Value::String(Text::Borrowed(text)));
    }
    let Some(version) = field("version").and_then(Json::as_str) else {
        return Err("unsupported attribute value".to_owned());
    };
    let version = Semver::parse(version).map_err(|why| format!("parse semantic version: {why}"))?;
    Ok(Value::Opaque(Opaque::Semver(Arc::new(version))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMIT: u64 = 1_000_000;

    fn device() -> Json {
        json!({
            "name": "gpu-0",
            "attributes": {
                "model": {"string": "a100"},
                "cores": {"int": 8},
                "healthy": {"bool": true},
                "firmware": {"version": "1.2.3"},
                "other.example.com/kind": {"string": "big"},
            },
            "capacity": {"memory": {"value": "40Gi"}},
        })
    }

    fn matches(expression: &str) -> Result<bool, String> {
        let device = device();
        let selector = Environment::of_devices(true).selector(expression)?;
        assert!(selector.estimate().max < LIMIT, "{expression}: {:?}", selector.estimate());
        Device::new("gpu.example.com", &device)?.matches(&selector, LIMIT)
    }

    #[test]
    fn a_device_is_asked_for_its_driver_attributes_and_capacity() {
        for (expression, expected) in [
            ("device.driver == 'gpu.example.com'", true),
            ("device.attributes['gpu.example.com'].model == 'a100'", true),
            ("device.attributes['gpu.example.com'].cores > 8", false),
            ("device.attributes['gpu.example.com'].healthy", true),
            ("device.attributes['other.example.com'].kind.startsWith('b')", true),
            ("device.attributes['gpu.example.com'].firmware.isGreaterThan(semver('1.0.0'))", true),
            ("device.capacity['gpu.example.com'].memory.compareTo(quantity('32Gi')) >= 0", true),
            ("device.allowMultipleAllocations", false),
            ("cel.bind(gpu, device.attributes['gpu.example.com'], gpu.healthy && gpu.cores == 8)", true),
        ] {
            assert_eq!(matches(expression), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn a_domain_that_a_device_does_not_have_is_empty() {
        for (expression, expected) in [
            ("has(device.attributes['none.example.com'].model)", false),
            ("'none.example.com' in device.attributes", false),
            ("'gpu.example.com' in device.attributes", true),
        ] {
            assert_eq!(matches(expression), Ok(expected), "{expression}");
        }
        assert_eq!(
            matches("device.attributes['none.example.com'].model == 'a'"),
            Err("no such key: model".to_owned())
        );
    }

    #[test]
    fn a_selector_that_is_none_is_refused_in_the_words_of_kubernetes() {
        for (expression, why) in [
            ("1", "must evaluate to bool or the unknown type, not int"),
            ("dyn(true)", "must evaluate to bool or the unknown type, not dyn"),
            (
                "device.attributes",
                "must evaluate to bool or the unknown type, not map(string, map(string, google.protobuf.Any))",
            ),
            (
                "device.attributes['a'].b.exists(x, x == 1)",
                "compilation failed: ERROR: <input>:1:23: expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)\n | device.attributes['a'].b.exists(x, x == 1)\n | ......................^",
            ),
            (
                "noSuchVar",
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'noSuchVar' (in container '')\n | noSuchVar\n | ^",
            ),
        ] {
            assert_eq!(matches(expression).err().as_deref(), Some(why), "{expression}");
        }
    }
}
