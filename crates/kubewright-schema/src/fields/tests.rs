//! What making sets costs.

use serde_json::{Value, json};

use super::set::MOVED;
use super::{Difference, Set, Shape, fields};
use crate::Schema;

/// A list that stands there backwards is as much work as any other: no step has to make room for another.
#[test]
fn the_fields_of_a_long_list_are_found_in_whatever_order_it_is() {
    let schema = Schema::built_in("io.k8s.api.core.v1.ConfigMap");
    let shape = Shape::Node { node: schema.root(), preserves: false, object: false };
    let object = |numbers: &mut dyn Iterator<Item = u32>| {
        let finalizers: Vec<Value> =
            numbers.map(|number| json!(format!("example.com/{number:05}"))).collect();
        json!({"metadata": {"finalizers": finalizers}})
    };
    let backwards = object(&mut (0..2000).rev());
    let owned = fields(shape, &backwards);
    let between = object(&mut (0..4000).rev().filter(|number| number % 3 == 0));
    Difference::between(shape, &backwards, &between).expect("they can be compared");
    let numbers =
        json!((0..2000).map(|at| (format!("i:{at}"), json!({}))).collect::<serde_json::Map<_, _>>());
    Set::decode(&numbers).expect("a set");
    assert_eq!(owned, fields(shape, &object(&mut (0..2000))));
    assert_eq!(MOVED.get(), 0);
}
