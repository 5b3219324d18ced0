use serde_json::json;

use super::*;

fn found(path: &str) -> Value {
    let object = json!({
        "spec": {"a": 1, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}, {"n": "z", "v": 3}], "empty": [], "null": null},
        "metadata": {"labels": {"a.b/c": "d"}},
        "status": {"conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "Odd (\"x\")]", "status": "False"},
        ]},
    });
    let path = Path::parse(path).unwrap_or_else(|why| panic!("{path}: {why}"));
    Value::Array(path.find(&object).into_iter().map(Cow::into_owned).collect())
}

#[test]
fn every_step_leads_where_it_says() {
    for (path, expected) in [
        (".spec.a", json!([1])),
        ("$.spec.a", json!([1])),
        (".spec['a']", json!([1])),
        (".spec.none.deeper", json!([])),
        (".spec.null", json!([null])),
        (".spec.null[0]", json!([])),
        (r".metadata.labels.a\.b/c", json!(["d"])),
        (r".metadata.labels['a\.b/c']", json!(["d"])),
        (".metadata.labels.*", json!(["d"])),
        (".spec.list[0].n", json!(["x"])),
        (".spec.list[-1].n", json!(["z"])),
        (".spec.list[*].n", json!(["x", "y", "z"])),
        (".spec.list[1:].n", json!(["y", "z"])),
        (".spec.list[0:2].n", json!(["x", "y"])),
        (".spec.list[::2].n", json!(["x", "z"])),
        (".spec.list[9].n", json!([])),
        (".spec.empty[*]", json!([])),
        (".spec.a[0]", json!([])),
        (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
        (r#".status.conditions[?(@.type == 'Ready')].status"#, json!(["True"])),
        (r#".status.conditions[?(@.type=="Odd (\"x\")]")].status"#, json!(["False"])),
        (".spec.list[?(@.v>1)].n", json!(["y", "z"])),
        (".spec.list[?(@.v)].n", json!(["x", "y", "z"])),
        (".spec.list[?(@.n==@.n)].v", json!([1, 2, 3])),
        (".spec.list[?(@.n==1)].v", json!([])),
        (".spec.list[?(@.none==1)].v", json!([])),
        (".spec.list[0,2].n", json!(["x", "z"])),
        (".spec['a', 'none', 'a']", json!([1, 1])),
        (".spec.list[0, 9].n", json!([])),
        ("..type", json!(["Ready", "Odd (\"x\")]"])),
        (".spec..v", json!([1, 2, 3])),
        (".metadata..", json!([{"labels": {"a.b/c": "d"}}, {"a.b/c": "d"}, "d"])),
        (".spec.list[?(1==1)].v", json!([1, 2, 3])),
        (".spec.list[?('x'==@.n)].v", json!([1])),
        (".spec.list[?(@.v=1)].v", json!([])),
        (".spec.list[?(@.v>1.5)].v", json!([])),
        (".spec.list[?(@.n[9])].v", json!([1, 2, 3])),
        (".spec.list[0:3:0].v", json!([])),
        (".spec.list[].n", json!(["x"])),
        (".spec.list[-1,0].n", json!(["z", "x"])),
        (".spec.null[?(@.a)]", json!([])),
        (".spec.a.*", json!([])),
        (".spec.list[0].n.*", json!([120])),
        ("spec", json!([])),
    ] {
        assert_eq!(found(path), expected, "{path}");
    }
}

#[test]
fn what_stands_behind_the_end_of_a_path_finds_nothing() {
    let value = json!({"a": "x", "b": "y"});
    for path in [".a}", ".a}.b", ".a}{.b"] {
        let path = Path::parse(path).expect(path);
        assert_eq!(path.find(&value).into_iter().map(Cow::into_owned).collect::<Vec<_>>(), [json!("x")]);
    }
}

#[test]
fn a_path_that_makes_no_sense_is_refused() {
    for path in [
        ".a[",
        ".a[x]",
        ".a[?(@.b",
        ".a[?(@.b==1)",
        ".a[?(==1)]",
        ".a....b",
        ".a[1:2:3:4]",
        ".a[-]",
        ".a['b",
        ".a[0,x]",
        "#",
        ".a[?(@.b}]",
        "'a",
        "1.2.3",
    ] {
        assert!(Path::parse(path).is_err(), "{path}");
    }
    let deep = format!("{}@.a{}", ".a[?(@".repeat(50), ")]".repeat(50));
    assert!(Path::parse(&deep).is_err());
}

#[test]
fn what_multiplies_ends() {
    let path = Path::parse(&"[0,0,0,0,0,0,0,0]".repeat(30)).expect("a path");
    let mut list = json!(1);
    for _ in 0..30 {
        list = json!([list]);
    }
    assert!(path.find(&list).is_empty());
    // Within one step, too.
    let list = json!(vec![json!([1]); 1_000]);
    for wide in ["[*]", "[*][0]", "[*].*", "[?(@)]"] {
        let repeated = format!("[{}]", vec!["*"; 1_000].join(","));
        assert!(Path::parse(&format!("{repeated}{wide}")).expect("a path").find(&list).is_empty(), "{wide}");
    }
}

#[test]
fn a_path_of_fields_tells_them() {
    assert_eq!(Path::parse(".spec.replicas").expect("a path").fields(), Some(vec!["spec", "replicas"]));
    assert_eq!(Path::parse(".spec.list[0]").expect("a path").fields(), None);
}
