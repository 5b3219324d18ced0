//! Held against what a running operator tells.

use std::{collections::BTreeSet, convert::Infallible, time::Duration};

use http::{Request, Response};
use kube::{Client, client::Body};
use kubewright_runtime::{
    CancellationToken, Manager, Metrics, World,
    command::{Installation, Run},
};
use serde_json::Value;

use crate::{Format, Input, MARK, generate, testing};

/// All that is asked of Prometheus by the files of an operator.
fn expressions(input: &Input) -> Vec<String> {
    let files = generate(input, &[Format::Kustomize]).expect("files");
    let text = |path: &str| files.get(path).unwrap_or_else(|| panic!("no {path}"));
    let dashboard: Value = serde_json::from_str(text("config/grafana/operator.json")).expect("JSON");
    let rule: Value = serde_saphyr::from_str(text("config/prometheus/rules.yaml")).expect("YAML");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let rules = rule["spec"]["groups"][0]["rules"].as_array().expect("rules");
    let found = targets.chain(rules).map(|asks| &asks["expr"]);
    let queries = variables.iter().map(|variable| &variable["query"]["query"]);
    found.chain(queries).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The names of metrics in an expression: each stands before its selector.
fn names(expression: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    expression
        .match_indices('{')
        .map(|(at, _)| {
            let before = &expression[..at];
            let begin = before.rfind(|c| !is_part(c)).map_or(0, |space| space + 1);
            before[begin..].to_owned()
        })
        .collect()
}

/// The labels that an expression takes apart by, without those that a scrape adds.
fn labels(expression: &str) -> BTreeSet<String> {
    const SCRAPED: [&str; 4] = ["namespace", "job", "pod", "instance"];
    let groups = expression.split("by (").skip(1).filter_map(|rest| rest.split_once(')'));
    let labels = groups.flat_map(|(group, _)| group.split(", "));
    labels.filter(|label| !SCRAPED.contains(label)).map(str::to_owned).collect()
}

/// What the operator with webhooks tells, of which each request was refused.
async fn exported() -> String {
    let server = tower::service_fn(|_: Request<Body>| async {
        let mut answer = Response::new(Body::from(b"no".to_vec()));
        *answer.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        Ok::<_, Infallible>(answer)
    });
    let metrics = Metrics::new();
    let client = metrics.requests().client(Client::new(server, "default"), "there");
    let client = metrics.requests().limited(client, "there", 100);
    let operator = kubewright_image_police::operator();
    let run = Run { leader_elect: true, ..Run::default() };
    let manager = Manager::counting_in(metrics.clone(), client, World::simulated(1));
    let mut manager = operator.manager(manager, &run).expect("a manager");
    let (_, webhooks) = operator.webhooks_in_process(&Installation::default()).expect("webhooks");
    manager.serve(webhooks);
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let text = metrics.text();
    stop.cancel();
    running.await.expect("no panic").expect("it ends well");
    text
}

#[tokio::test(start_paused = true)]
async fn every_metric_of_the_dashboard_and_the_alerts_is_told_with_its_labels() {
    let (told, asked) = (exported().await, expressions(&testing::police()));
    assert!(asked.len() > 30, "{asked:?}");
    for expression in asked {
        let names = names(&expression);
        assert!(!names.is_empty(), "{expression} asks for nothing");
        for name in names {
            let series = told
                .lines()
                .find(|line| line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name} ")));
            let series = series.unwrap_or_else(|| panic!("nobody tells {name}, which {expression} asks for"));
            for label in labels(&expression) {
                assert!(series.contains(&format!("{label}=\"")), "{name} has no {label}: {expression}");
            }
        }
    }
}

#[test]
fn an_operator_without_webhooks_has_no_pictures_of_them() {
    let of = |input: &Input| expressions(input).iter().any(|expression| expression.contains("webhook"));
    assert!(of(&testing::police()) && !of(&testing::whitelist()));
}

#[test]
fn alerts_look_at_this_operator_alone() {
    let files = generate(&testing::whitelist(), &[Format::Kustomize]).expect("files");
    let rule: Value =
        serde_saphyr::from_str(files.get("config/prometheus/rules.yaml").expect("rules")).expect("YAML");
    for alert in rule["spec"]["groups"][0]["rules"].as_array().expect("rules") {
        let expression = alert["expr"].as_str().expect("an expression");
        let selectors = expression.matches('{').count();
        let ours = expression.matches("{namespace=\"whitelist-system\", job=\"whitelist-metrics\"}").count();
        assert_eq!((selectors, selectors > 0), (ours, true), "{expression}");
    }
}

#[test]
fn a_dashboard_is_known_as_generated_and_each_picture_has_its_place() {
    let files = generate(&testing::police(), &[Format::Kustomize]).expect("files");
    let text = files.get("config/grafana/operator.json").expect("a dashboard");
    assert!(text.contains(MARK));
    let dashboard: Value = serde_json::from_str(text).expect("JSON");
    let places: BTreeSet<String> = dashboard["panels"]
        .as_array()
        .expect("panels")
        .iter()
        .map(|panel| panel["gridPos"].to_string())
        .collect();
    assert_eq!(places.len(), dashboard["panels"].as_array().expect("panels").len());
}

#[test]
fn helm_leaves_what_grafana_and_prometheus_fill_in_to_them() {
    let files = generate(&testing::police(), &[Format::Helm]).expect("files");
    for (file, theirs) in [
        ("grafana/dashboard.yaml", "controller}} {{ \"{{\" }}result}}"),
        ("prometheus/rules.yaml", "{{ \"{{\" }} $labels.controller }}"),
    ] {
        let text = files.get(&format!("dist/chart/templates/{file}")).unwrap_or_else(|| panic!("no {file}"));
        assert!(text.contains(theirs), "{text}");
        assert!(text.contains("{{ .Release.Namespace"), "{text}");
    }
}
