use proptest::prelude::*;
use serde_json::json;

use super::*;

const MANAGER: &str = "endpointslice-controller.k8s.io";

fn service() -> Service {
    kubewright_objects::from_value(json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "uid-web", "labels": {"team": "a"}},
        "spec": {"clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"], "selector": {"app": "web"}}}))
    .expect("a Service")
}

fn endpoint(at: usize, ready: bool) -> Endpoint {
    kubewright_objects::from_value(json!({
        "addresses": [format!("10.1.{}.{}", at / 250, at % 250)], "conditions": {"ready": ready},
        "targetRef": {"kind": "Pod", "namespace": "default", "name": format!("p{at}")}}))
    .expect("an endpoint")
}

/// These endpoints at these ports.
fn desired(groups: &[(i32, &[usize])]) -> Desired {
    let groups = groups.iter().map(|(port, members)| {
        let ports = vec![EndpointPort { port: Some(*port), ..EndpointPort::default() }];
        let endpoints = members.iter().map(|at| endpoint(*at, true));
        let endpoints = endpoints.map(|endpoint| (Identity::of(&endpoint), endpoint)).collect();
        (Ports::of(&ports), Group { ports, endpoints })
    });
    BTreeMap::from([(Family::V4, groups.collect())])
}

/// What is stored when the plan has been carried out.
fn carry_out(existing: &[Arc<EndpointSlice>], plan: Plan) -> Vec<Arc<EndpointSlice>> {
    let mut stored: BTreeMap<_, _> =
        existing.iter().map(|slice| (slice.metadata.name.clone().expect("a name"), slice.clone())).collect();
    for slice in &plan.delete {
        stored.remove(slice.metadata.name.as_ref().expect("a name"));
    }
    for slice in plan.update {
        let name = slice.metadata.name.clone().expect("a name");
        assert!(stored.insert(name, Arc::new(slice)).is_some(), "what is updated is there");
    }
    for mut slice in plan.create {
        let name =
            (0..).map(|at| format!("web-{at}")).find(|name| !stored.contains_key(name)).expect("a free name");
        slice.metadata.name = Some(name.clone());
        stored.insert(name, Arc::new(slice));
    }
    stored.into_values().collect()
}

fn run(groups: &[(i32, &[usize])], existing: &[Arc<EndpointSlice>]) -> Vec<Arc<EndpointSlice>> {
    carry_out(existing, plan(&service(), desired(groups), existing.to_vec(), MANAGER))
}

fn writes(plan: &Plan) -> (usize, usize, usize) {
    (plan.create.len(), plan.update.len(), plan.delete.len())
}

#[test]
fn a_service_without_pods_has_one_empty_slice_and_keeps_it() {
    let slices = run(&[], &[]);
    assert_eq!(slices.len(), 1);
    let slice = json!(*slices[0]);
    assert_eq!(slice["metadata"]["generateName"], "web-");
    assert_eq!(slice["metadata"]["labels"], json!({"team": "a", SERVICE_NAME: "web", MANAGED_BY: MANAGER}));
    assert_eq!(slice["metadata"]["ownerReferences"][0]["uid"], "uid-web");
    assert_eq!(writes(&plan(&service(), desired(&[]), slices, MANAGER)), (0, 0, 0));
}

#[test]
fn an_empty_slice_that_lost_its_owner_is_not_replaced_by_its_like() {
    let mut slices = run(&[], &[]);
    Arc::make_mut(&mut slices[0]).metadata.owner_references = None;
    assert_eq!(writes(&plan(&service(), desired(&[]), slices.clone(), MANAGER)), (0, 0, 0));
    assert_eq!(writes(&plan(&service(), desired(&[(80, &[1])]), slices, MANAGER)), (1, 0, 1));
}

#[test]
fn the_first_endpoint_is_written_over_the_empty_slice() {
    let empty = run(&[], &[]);
    assert_eq!(writes(&plan(&service(), desired(&[(80, &[1])]), empty.clone(), MANAGER)), (0, 1, 0));
    let one = run(&[(80, &[1])], &empty);
    assert_eq!(one[0].metadata.name, empty[0].metadata.name);
    assert_eq!(writes(&plan(&service(), desired(&[]), one, MANAGER)), (0, 1, 0));
}

#[test]
fn a_hundred_and_one_endpoints_take_two_slices_and_one_less_costs_one_write() {
    let all: Vec<usize> = (0..101).collect();
    let slices = run(&[(80, &all)], &[]);
    assert_eq!(slices.iter().map(|slice| endpoints(slice).len()).collect::<Vec<_>>(), [100, 1]);
    let (create, update, delete) = writes(&plan(&service(), desired(&[(80, &all[..100])]), slices, MANAGER));
    assert_eq!(create + update + delete, 1);
}

#[test]
fn labels_of_the_service_go_to_its_slices() {
    let slices = run(&[(80, &[1])], &[]);
    let mut relabelled = service();
    relabelled.metadata.labels = Some(BTreeMap::from([("team".into(), "b".into())]));
    let plan = plan(&relabelled, desired(&[(80, &[1])]), slices, MANAGER);
    assert_eq!(writes(&plan), (0, 1, 0));
    assert_eq!(plan.update[0].metadata.labels.as_ref().expect("labels")["team"], "b");
    assert_eq!(endpoints(&plan.update[0]).len(), 1);
}

#[test]
fn slices_of_an_older_service_of_that_name_are_deleted() {
    let slices = run(&[(80, &[1])], &[]);
    let mut successor = service();
    successor.metadata.uid = Some("another".into());
    let plan = plan(&successor, desired(&[(80, &[1])]), slices, MANAGER);
    assert_eq!(writes(&plan), (1, 0, 1));
}

#[test]
fn a_family_that_the_service_gave_up_loses_its_slices() {
    let mut slices = run(&[(80, &[1])], &[]);
    Arc::make_mut(&mut slices[0]).address_type = "IPv6".into();
    assert_eq!(writes(&plan(&service(), desired(&[]), slices, MANAGER)), (1, 0, 1));
}

fn groups() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let members = proptest::collection::btree_set(0..300usize, 0..220);
    proptest::collection::vec(members.prop_map(|set| set.into_iter().collect()), 1..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn after_any_history_the_slices_hold_exactly_what_is_desired_and_a_second_plan_is_empty(
        history in proptest::collection::vec(groups(), 1..5)
    ) {
        let mut slices = Vec::new();
        for groups in &history {
            let groups: Vec<_> = (80..).zip(groups.iter().map(Vec::as_slice)).collect();
            slices = run(&groups, &slices);
            let mut found: Vec<_> = slices.iter().flat_map(|slice| {
                let port = slice.ports.iter().flatten().next().and_then(|port| port.port);
                endpoints(slice).iter().map(move |endpoint| (port, Identity::of(endpoint)))
            }).collect();
            let mut wanted: Vec<_> = groups.iter().flat_map(|(port, members)| {
                members.iter().map(move |at| (Some(*port), Identity::of(&endpoint(*at, true))))
            }).collect();
            found.sort();
            wanted.sort();
            prop_assert_eq!(found, wanted);
            prop_assert!(!slices.is_empty() && slices.iter().all(|slice| endpoints(slice).len() <= MAX));
            prop_assert_eq!(writes(&plan(&service(), desired(&groups), slices.clone(), MANAGER)), (0, 0, 0));
        }
    }
}
