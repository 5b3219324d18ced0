//! Held against controller-runtime's sources and Kubebuilder's dashboards.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use kubewright_world::Clock;

use super::{Load, Metrics, family::REGISTERED};
use crate::{Leadership, webhook, workqueue::Priority};

/// Every family of controller-runtime v0.24.1 that this crate has something to say about: name, type, labels in the order of
/// the text format, number of finite buckets. From `pkg/internal/controller/metrics/metrics.go`,
/// `pkg/internal/metrics/workqueue.go`, `pkg/metrics/{leaderelection,client_go_adapter}.go`,
/// `pkg/webhook/{internal,admission,conversion}/metrics/metrics.go`, `pkg/certwatcher/metrics/metrics.go`; the two times of requests from
/// `k8s.io/component-base/metrics/prometheus/restclient/metrics.go`.
const FAMILIES: &[(&str, &str, &[&str], usize)] = &[
    ("certwatcher_read_certificate_errors_total", "counter", &[], 0),
    ("certwatcher_read_certificate_total", "counter", &[], 0),
    ("controller_runtime_active_workers", "gauge", &["controller"], 0),
    ("controller_runtime_conversion_webhook_panics_total", "counter", &[], 0),
    ("controller_runtime_max_concurrent_reconciles", "gauge", &["controller"], 0),
    ("controller_runtime_reconcile_errors_total", "counter", &["controller"], 0),
    ("controller_runtime_reconcile_panics_total", "counter", &["controller"], 0),
    ("controller_runtime_reconcile_time_seconds", "histogram", &["controller"], 40),
    ("controller_runtime_reconcile_timeouts_total", "counter", &["controller"], 0),
    ("controller_runtime_reconcile_total", "counter", &["controller", "result"], 0),
    ("controller_runtime_terminal_reconcile_errors_total", "counter", &["controller"], 0),
    ("controller_runtime_webhook_latency_seconds", "histogram", &["webhook"], 12),
    ("controller_runtime_webhook_panics_total", "counter", &[], 0),
    ("controller_runtime_webhook_requests_in_flight", "gauge", &["webhook"], 0),
    ("controller_runtime_webhook_requests_total", "counter", &["code", "webhook"], 0),
    ("leader_election_master_status", "gauge", &["name"], 0),
    ("leader_election_slowpath_total", "counter", &["name"], 0),
    ("rest_client_rate_limiter_duration_seconds", "histogram", &["host", "verb"], 12),
    ("rest_client_request_duration_seconds", "histogram", &["host", "verb"], 12),
    ("rest_client_requests_total", "counter", &["code", "host", "method"], 0),
    ("workqueue_adds_total", "counter", &["controller", "name"], 0),
    ("workqueue_depth", "gauge", &["controller", "name", "priority"], 0),
    ("workqueue_longest_running_processor_seconds", "gauge", &["controller", "name"], 0),
    ("workqueue_queue_duration_seconds", "histogram", &["controller", "name"], 12),
    ("workqueue_retries_total", "counter", &["controller", "name"], 0),
    ("workqueue_unfinished_work_seconds", "gauge", &["controller", "name"], 0),
    ("workqueue_work_duration_seconds", "histogram", &["controller", "name"], 12),
];

/// What the panels of Kubebuilder's Grafana plugin ask for (`controller-runtime-metrics.json` and
/// `controller-resources-metrics.json` of its templates), without what the scrape adds: `job`, `namespace`, `pod`, `instance`.
const QUERIES: &[(&str, &[&str])] = &[
    ("controller_runtime_active_workers", &["controller"]),
    ("controller_runtime_reconcile_total", &[]),
    ("controller_runtime_reconcile_errors_total", &[]),
    ("workqueue_depth", &[]),
    ("workqueue_queue_duration_seconds_bucket", &["name", "le"]),
    ("workqueue_adds_total", &["name"]),
    ("workqueue_unfinished_work_seconds", &[]),
    ("workqueue_work_duration_seconds_bucket", &["name", "le"]),
    ("workqueue_retries_total", &["name"]),
    ("process_cpu_seconds_total", &[]),
    ("process_resident_memory_bytes", &[]),
];

fn used() -> Metrics {
    let metrics = Metrics::new();
    let controller = metrics.controller("web");
    controller.took(Duration::from_millis(3));
    let queue = metrics.queue("web");
    queue.waited(Duration::from_micros(5));
    queue.worked(Duration::from_millis(3));
    let second = Duration::from_secs(1);
    let depths = BTreeMap::from([(Priority::NORMAL, 2), (Priority::LOW, 3)]);
    metrics.read_queue("web", move || {
        Some(Load { depths: depths.clone(), unfinished: second * 3, longest: second })
    });
    let server = webhook::Metrics::of(["/mutate"]);
    server.begin("/mutate").answered(200);
    metrics.read_webhooks(server);
    let (requests, second) = (metrics.requests(), Duration::from_secs(1));
    requests.count("200", "GET", "10.0.0.1:443");
    requests.took("GET", "10.0.0.1:443", second);
    requests.held_back("GET", "10.0.0.1:443", second);
    metrics.read_leadership(Leadership::new("web", Clock::system()));
    metrics.certificates().read(true);
    metrics
}

/// The labels of a line of the text format.
fn labels(line: &str) -> Vec<&str> {
    let Some((_, rest)) = line.split_once('{') else { return Vec::new() };
    let (labels, _) = rest.rsplit_once('}').expect("labels end");
    labels.split("\",").map(|label| label.split_once('=').expect("a label has a value").0).collect()
}

#[test]
fn names_types_labels_and_buckets_are_controller_runtimes() {
    let text = used().text();
    for (name, kind, expected, buckets) in FAMILIES {
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name} is no {kind}");
        assert!(text.contains(&format!("# HELP {name} ")), "{name} is not explained");
        let line = |suffix: &str| {
            let starts = [format!("{name}{suffix}{{"), format!("{name}{suffix} ")];
            text.lines().find(|line| starts.iter().any(|start| line.starts_with(start)))
        };
        let sample =
            line(if *kind == "histogram" { "_sum" } else { "" }).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(labels(sample), *expected, "{name}");
        let finite = text
            .lines()
            .filter(|line| line.starts_with(&format!("{name}_bucket{{")) && !line.contains("le=\"+Inf\""));
        assert_eq!(finite.count(), *buckets, "{name}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_reference_has_every_family_that_there_is() {
    REGISTERED.take();
    let found = kubewright_reference::families(&used().text());
    let names: BTreeSet<String> = found.iter().map(|family| family.name.clone()).collect();
    assert_eq!(names, REGISTERED.take(), "a family without a value is in no text: use it in used()");
    let made_by = "cargo test -p kubewright-runtime --lib reference";
    kubewright_reference::check_part(
        "metrics.md",
        "operator",
        made_by,
        &kubewright_reference::metric_table(&found),
    );
}

#[test]
fn every_query_of_kubebuilders_dashboards_finds_its_series_and_labels() {
    let text = used().text();
    for (name, asked) in QUERIES {
        let found = text
            .lines()
            .find(|line| line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name} ")));
        let labels = labels(found.unwrap_or_else(|| panic!("no series {name}")));
        assert!(asked.iter().all(|label| labels.contains(label)), "{name} has {labels:?}, not {asked:?}");
    }
}

#[test]
fn a_controller_that_did_nothing_yet_is_told_with_zeros() {
    let metrics = Metrics::new();
    metrics.controller("web");
    let text = metrics.text();
    for result in ["success", "error", "requeue", "requeue_after"] {
        let line =
            format!("controller_runtime_reconcile_total{{controller=\"web\",result=\"{result}\"}} 0\n");
        assert!(text.contains(&line), "{result}");
    }
    assert!(text.contains("controller_runtime_reconcile_timeouts_total{controller=\"web\"} 0\n"));
}

#[test]
fn what_a_queue_is_at_is_read_when_it_is_asked_for_and_nothing_when_it_is_gone() {
    let text = used().text();
    assert!(text.contains("workqueue_depth{controller=\"web\",name=\"web\",priority=\"0\"} 2\n"));
    assert!(text.contains("workqueue_depth{controller=\"web\",name=\"web\",priority=\"-100\"} 3\n"));
    assert!(text.contains("workqueue_unfinished_work_seconds{controller=\"web\",name=\"web\"} 3\n"));
    assert!(
        text.contains("workqueue_longest_running_processor_seconds{controller=\"web\",name=\"web\"} 1\n")
    );
    let metrics = Metrics::new();
    metrics.read_queue("web", || None);
    assert!(metrics.text().contains("workqueue_depth{controller=\"web\",name=\"web\",priority=\"0\"} 0\n"));
}

#[test]
fn the_depth_is_told_for_each_priority_until_there_are_too_many() {
    let metrics = Metrics::new();
    let priorities = Arc::new(AtomicI32::new(20));
    let upto = priorities.clone();
    metrics.read_queue("web", move || {
        let depths = (1..=upto.load(Ordering::SeqCst)).map(|priority| (Priority(priority), 2)).collect();
        Some(Load { depths, ..Load::default() })
    });
    let depths = || -> Vec<String> {
        let text = metrics.text();
        text.lines().filter(|line| line.starts_with("workqueue_depth{")).map(str::to_owned).collect()
    };
    assert_eq!(depths().len(), 21);
    priorities.store(0, Ordering::SeqCst);
    assert!(depths().len() == 21 && depths().iter().all(|line| line.ends_with("} 0")), "zeros stay");
    priorities.store(1000, Ordering::SeqCst);
    let all = "workqueue_depth{controller=\"web\",name=\"web\",priority=\"exceeded_cardinality_limit\"} 2000";
    assert_eq!(depths(), [all]);
    priorities.store(1, Ordering::SeqCst);
    assert_eq!(depths(), [all.replace("2000", "2")]);
}

#[test]
fn the_bounds_are_controller_runtimes_to_the_digit() {
    let families: BTreeMap<String, _> =
        used().gather().into_iter().map(|family| (family.name().to_owned(), family)).collect();
    let bounds = |name: &str| -> Vec<f64> {
        let metric = &families[name].get_metric()[0];
        metric.get_histogram().get_bucket().iter().map(prometheus::proto::Bucket::upper_bound).collect()
    };
    let ten_times: Vec<f64> = (0..12).map(|n| 10f64.powi(n - 8)).collect();
    for name in ["workqueue_queue_duration_seconds", "workqueue_work_duration_seconds"] {
        let off = bounds(name).iter().zip(&ten_times).any(|(have, want)| (have / want - 1.0).abs() > 1e-12);
        assert!(!off, "{name}: {:?}", bounds(name));
    }
    let time = bounds("controller_runtime_reconcile_time_seconds");
    assert_eq!((time.len(), time[0], time[17], time[39]), (40, 0.005, 1.0, 60.0));
}

#[test]
fn two_managers_do_not_count_for_one_another() {
    let (one, other) = (Metrics::new(), Metrics::new());
    one.controller("web").success.inc();
    let zero = "controller_runtime_reconcile_total{controller=\"web\",result=\"success\"} 0\n";
    other.controller("web");
    assert!(other.text().contains(zero));
    assert!(!one.text().contains(zero));
}
