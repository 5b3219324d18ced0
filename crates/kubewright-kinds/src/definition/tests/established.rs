//! What stays of a definition that is there, what its status tells, and the kinds that it makes.

use super::*;

#[test]
fn what_is_established_stays() {
    let old = established(plain());
    let changed =
        with(with(old.clone(), "/spec/scope", json!("Cluster")), "/spec/names/kind", json!("Thingy"));
    assert_eq!(
        complaints(changed, Some(&old)),
        [
            r#"spec.scope: Invalid value: "Cluster": field is immutable"#,
            r#"spec.names.kind: Invalid value: "Thingy": field is immutable"#,
        ]
    );
    let mut fresh = plain();
    begin(&mut fresh);
    assert_eq!(
        complaints(with(fresh.clone(), "/spec/scope", json!("Cluster")), Some(&fresh)),
        Vec::<String>::new()
    );
}

#[test]
fn a_version_that_was_stored_must_stay() {
    let old = established(plain());
    let mut gone = with(old.clone(), "/spec/versions/0/name", json!("v2"));
    gone["status"] = old["status"].clone();
    assert_eq!(
        complaints(gone, Some(&old)),
        [
            r#"status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"#
        ]
    );
}

#[test]
fn free_names_are_accepted_and_the_definition_is_established() {
    let mut definition = established(plain());
    let conditions = json!([
        {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found",
            "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]);
    let accepted = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    assert_eq!(
        definition["status"],
        json!({"conditions": conditions, "acceptedNames": accepted, "storedVersions": ["v1"]})
    );
    let once = definition.clone();
    status(&mut definition, &Kinds::of([]), "2027-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(definition, once, "nothing changes when nothing has changed");
}

#[test]
fn names_that_others_have_are_refused() {
    let others = Kinds::of(made_of(&established(plain())).into_iter().map(std::sync::Arc::new));
    let named = with(plain(), "/metadata/name", json!("items.example.com"));
    let mut taken =
        with(named, "/spec/names", json!({"plural": "items", "kind": "Thing", "shortNames": ["things"]}));
    default(&mut taken);
    status(&mut taken, &others, now());
    let condition = |index: usize| {
        let one = &taken["status"]["conditions"][index];
        [text(one, "type"), text(one, "status"), text(one, "reason"), text(one, "message")].map(str::to_owned)
    };
    assert_eq!(
        condition(0),
        ["NamesAccepted", "False", "ListKindConflict", "\"ThingList\" is already in use"]
    );
    assert_eq!(condition(1), ["Established", "False", "NotAccepted", "not all names are accepted"]);
    assert_eq!(taken["status"]["acceptedNames"], json!({"plural": "items", "kind": ""}));
    assert!(made_of(&taken).is_empty());
    // When the other is gone, the names are free.
    status(&mut taken, &Kinds::of([]), now());
    assert_eq!(made_of(&taken).len(), 1);
}

#[test]
fn each_served_version_makes_a_kind() {
    let mut definition = plain();
    definition["spec"]["scope"] = json!("Cluster");
    definition["spec"]["names"]["shortNames"] = json!(["tg"]);
    definition["spec"]["names"]["categories"] = json!(["all"]);
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    definition["spec"]["versions"] = json!([
        {"name": "v1alpha1", "served": true, "storage": false, "deprecated": true, "deprecationWarning": "going away", "schema": schema},
        {"name": "v1beta1", "served": true, "storage": false, "deprecated": true, "schema": schema},
        {"name": "v0", "served": false, "storage": false, "schema": schema},
        {"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {},
            "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
            "selectableFields": [{"jsonPath": ".spec.color"}]},
    ]);
    default(&mut definition);
    let kinds = made_of(&definition);
    let versions: Vec<_> = kinds.iter().map(|kind| kind.version.as_str()).collect();
    assert_eq!(versions, ["v1", "v1beta1", "v1alpha1"]);
    let v1 = &kinds[0];
    assert_eq!(
        (v1.plural.as_str(), v1.singular.as_str(), v1.list_kind.as_str()),
        ("things", "thing", "ThingList")
    );
    assert_eq!((v1.scope, v1.short_names.len(), v1.categories.len()), (Scope::Cluster, 1, 1));
    assert!(v1.has_status());
    let Some(Subresource::CustomScale(paths)) = v1.subresource("scale") else { panic!("there is a scale") };
    assert_eq!((paths.spec_replicas.as_str(), &paths.label_selector), (".spec.n", &None));
    let custom = |index: usize| kinds[index].custom.clone().unwrap();
    assert_eq!(custom(0).selectable_fields, ["spec.color"]);
    assert_eq!((custom(0).definition.as_str(), custom(2).versions.storage()), ("things.example.com", "v1"));
    assert_eq!(custom(0).deprecation, None);
    assert_eq!(
        custom(1).deprecation.as_deref(),
        Some("example.com/v1beta1 Thing is deprecated; use example.com/v1 Thing")
    );
    assert_eq!(custom(2).deprecation.as_deref(), Some("going away"));
}
