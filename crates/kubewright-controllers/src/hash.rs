//! Hashes that become parts of names and labels.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kubewright_meta::go::in_html;
use serde_json::Value;

/// The letters of generated names, in the order that `rand.SafeEncodeString` counts on.
const SAFE_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The name part for `template`: an FNV-1a sum over its canonical JSON and the number of collisions so far, in safe
/// letters. Kubernetes (`ComputeHash` in `pkg/controller/controller_utils.go`) sums a dump of Go's memory instead, so
/// its hashes for the same template are others; the length and the alphabet are the same.
pub(crate) fn of_template(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let canonical = kubewright_objects::to_value(template).map(|value| value.to_string()).unwrap_or_default();
    let mut sum = Fnv::new(Order::XorFirst);
    sum.write(canonical.as_bytes());
    if let Some(collisions) = collisions {
        sum.write(&i64::from(collisions).to_le_bytes());
    }
    safe(sum.0)
}

/// The name part of a revision that holds `data`: the very letters that Kubernetes finds, an FNV-1 sum over the JSON
/// as Go writes it and the number of collisions so far (`HashControllerRevision` in
/// `pkg/controller/history/controller_history.go`).
pub(crate) fn of_revision(data: &Value, collisions: i32) -> String {
    let mut sum = Fnv::new(Order::MultiplyFirst);
    sum.write(in_html(&data.to_string()).as_bytes());
    sum.write(collisions.to_string().as_bytes());
    safe(sum.0)
}

/// Each digit of the decimal number as a safe letter (`SafeEncodeString`).
fn safe(sum: u32) -> String {
    let decimal = sum.to_string();
    decimal.bytes().map(|digit| char::from(SAFE_LETTERS[usize::from(digit) % SAFE_LETTERS.len()])).collect()
}

/// What a step of the sum does first: FNV-1a mixes the byte in, FNV-1 multiplies.
#[derive(Clone, Copy)]
enum Order {
    XorFirst,
    MultiplyFirst,
}

/// An FNV sum, 32 bits wide.
struct Fnv(u32, Order);

impl Fnv {
    const PRIME: u32 = 0x0100_0193;

    fn new(order: Order) -> Self {
        Self(0x811c_9dc5, order)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().copied().map(u32::from) {
            self.0 = match self.1 {
                Order::XorFirst => (self.0 ^ byte).wrapping_mul(Self::PRIME),
                Order::MultiplyFirst => self.0.wrapping_mul(Self::PRIME) ^ byte,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(value: Value) -> PodTemplateSpec {
        kubewright_objects::from_value(value).expect("a template")
    }

    fn sum(order: Order, text: &str) -> u32 {
        let mut sum = Fnv::new(order);
        sum.write(text.as_bytes());
        sum.0
    }

    #[test]
    fn the_sums_are_those_of_the_tables_of_fnv() {
        assert_eq!(sum(Order::XorFirst, "foobar"), 0xbf9c_f968);
        assert_eq!(sum(Order::MultiplyFirst, "foobar"), 0x31f0_b262);
    }

    #[test]
    fn a_hash_has_safe_letters_and_differs_by_template_and_collision() {
        let one = template(json!({"spec": {"containers": [{"name": "c", "image": "web:1"}]}}));
        let two = template(json!({"spec": {"containers": [{"name": "c", "image": "web:2"}]}}));
        assert!(of_template(&one, None).bytes().all(|letter| SAFE_LETTERS.contains(&letter)));
        assert_eq!(of_template(&one, None), of_template(&one.clone(), None));
        assert_ne!(of_template(&one, None), of_template(&two, None));
        assert_ne!(of_template(&one, None), of_template(&one, Some(1)));
    }

    /// What kube-controller-manager v1.36.3 called the first revision of this StatefulSet.
    #[test]
    fn a_revision_is_called_what_kubernetes_calls_it() {
        let data = json!({"spec": {"template": {
            "$patch": "replace",
            "metadata": {"annotations": {"note": "a < b && c > d é"}, "labels": {"app": "hash"}},
            "spec": {
                "containers": [{
                    "args": ["--x=<y>&z"],
                    "env": [{"name": "A", "value": "1"},
                        {"name": "B", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
                    "image": "registry.local/web:1", "imagePullPolicy": "IfNotPresent", "name": "c",
                    "livenessProbe": {"failureThreshold": 3, "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
                        "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    "volumeMounts": [{"mountPath": "/tmp", "name": "tmp"}],
                }],
                "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
                "securityContext": {}, "terminationGracePeriodSeconds": 30, "tolerations": [{"operator": "Exists"}],
                "volumes": [{"emptyDir": {}, "name": "tmp"},
                    {"configMap": {"defaultMode": 420, "name": "a", "optional": true}, "name": "cm"}],
            },
        }}});
        assert_eq!(of_revision(&data, 0), "6984cff777");
    }

    #[test]
    fn revisions_are_summed_as_go_writes_them() {
        let data = json!({"b": "1 < 2 && 3 > 2", "a": 1});
        assert_eq!(in_html(&data.to_string()), r#"{"a":1,"b":"1 \u003c 2 \u0026\u0026 3 \u003e 2"}"#);
        assert_ne!(of_revision(&data, 0), of_revision(&data, 1));
    }
}
