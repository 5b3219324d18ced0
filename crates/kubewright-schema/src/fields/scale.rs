//! The owners of the number of replicas, between an object and its scale
//! (`k8s.io/apimachinery/pkg/util/managedfields`, `scalehandler.go`).

use super::element::Element;
use super::managed::{Entry, Managed, Manager, Operation};
use super::set::{Set, named};

/// The version of scales.
pub const SCALE: &str = "autoscaling/v1";

/// Where an object of some version has its replicas.
pub enum Place {
    /// There is no such version.
    Unknown,
    /// It has none.
    Nowhere,
    /// There.
    At(Vec<Element>),
}

fn replicas() -> Set {
    named(&[&["spec", "replicas"]])
}

/// The entries of an object's scale: of those who own the replicas.
#[must_use]
pub fn to_scale(object: &Managed, place: impl Fn(&str) -> Place) -> Managed {
    let owners = object.entries.iter().filter(|entry| match place(&entry.manager.api_version) {
        Place::At(path) => entry.fields.has(&path),
        Place::Unknown | Place::Nowhere => false,
    });
    let entry = |entry: &Entry| Entry {
        manager: Manager { api_version: SCALE.to_owned(), ..entry.manager.clone() },
        fields: replicas(),
        ..entry.clone()
    };
    Managed { entries: owners.map(entry).collect() }
}

/// The entries of an object after a write of its scale, which has the entries `scale` then. The object is written in
/// `api_version`. An updater of the scale gets an entry of its own, without a time.
#[must_use]
pub fn to_object(
    object: &Managed,
    scale: Managed,
    api_version: &str,
    place: impl Fn(&str) -> Place,
) -> Managed {
    let mut scaling = scale.entries;
    let mut entries = Vec::new();
    for entry in &object.entries {
        let path = match place(&entry.manager.api_version) {
            Place::Unknown => continue,
            Place::At(path) if entry.fields.has(&path) => path,
            Place::Nowhere | Place::At(_) => {
                entries.push(entry.clone());
                continue;
            }
        };
        let is_kept = entry.manager.operation == Operation::Apply;
        match scaling.iter().position(|other| is_kept && other.manager == entry.manager) {
            Some(at) => {
                scaling.remove(at);
                entries.push(entry.clone());
            }
            None => {
                let fields = entry.fields.difference(&Set::of(&path));
                if !fields.is_empty() {
                    entries.push(Entry { fields, ..entry.clone() });
                }
            }
        }
    }
    let Place::At(path) = place(api_version) else { return Managed { entries } };
    let owners = scaling.into_iter().filter(|entry| !entry.fields.intersection(&replicas()).is_empty());
    entries.extend(owners.map(|entry| Entry {
        manager: Manager { api_version: api_version.to_owned(), ..entry.manager },
        time: None,
        fields: Set::of(&path),
    }));
    Managed { entries }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, operation: Operation, fields: Set) -> Entry {
        let manager = Manager {
            name: name.to_owned(),
            operation,
            api_version: "apps/v1".to_owned(),
            subresource: String::new(),
        };
        Entry { manager, time: Some("2026-01-01T00:00:00Z".to_owned()), fields }
    }

    fn place(api_version: &str) -> Place {
        match api_version {
            "apps/v1" => Place::At(super::super::set::path(&["spec", "replicas"])),
            _ => Place::Unknown,
        }
    }

    #[test]
    fn a_scaler_takes_the_replicas_and_nothing_else() {
        let both = named(&[&["spec", "replicas"], &["spec", "paused"]]);
        let object = Managed {
            entries: vec![
                entry("applier", Operation::Apply, both),
                entry("other", Operation::Update, named(&[&["spec", "paused"]])),
            ],
        };
        let mut scale = to_scale(&object, place);
        assert_eq!(scale.entries.len(), 1, "only who owns the replicas");
        assert_eq!(scale.entries[0].manager.api_version, SCALE);
        let scaler = Manager {
            name: "scaler".to_owned(),
            operation: Operation::Update,
            api_version: SCALE.to_owned(),
            subresource: "scale".to_owned(),
        };
        scale.entries = vec![Entry {
            manager: scaler,
            time: Some("2026-01-02T00:00:00Z".to_owned()),
            fields: replicas(),
        }];
        let after = to_object(&object, scale, "apps/v1", place);
        let told: Vec<_> =
            after.entries.iter().map(|entry| (entry.manager.name.as_str(), entry.time.is_some())).collect();
        assert_eq!(told, [("applier", true), ("other", true), ("scaler", false)]);
        assert_eq!(after.entries[0].fields, named(&[&["spec", "paused"]]));
        assert_eq!(after.entries[2].fields, named(&[&["spec", "replicas"]]));
        assert_eq!(after.entries[2].manager.api_version, "apps/v1");
    }

    #[test]
    fn an_applier_that_still_owns_them_in_the_scale_keeps_its_entry() {
        let object =
            Managed { entries: vec![entry("applier", Operation::Apply, named(&[&["spec", "replicas"]]))] };
        let scale = to_scale(&object, place);
        assert_eq!(to_object(&object, scale, "apps/v1", place), object);
    }
}
