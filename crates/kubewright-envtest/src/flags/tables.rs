//! The flags that there are, as Kubernetes v1.36's kube-apiserver and etcd v3.6 tell them with `--help`.

use super::value::Type;

/// The flags of a program.
#[derive(Debug)]
pub(crate) struct Table {
    /// How it is called.
    pub(crate) program: &'static str,
    /// Names by type, with spaces between.
    flags: &'static [(Type, &'static str)],
}

impl Table {
    /// The type of a flag; `None` when there is no such flag.
    pub(super) fn type_of(&self, name: &str) -> Option<Type> {
        self.flags
            .iter()
            .find(|(_, names)| names.split_ascii_whitespace().any(|known| known == name))
            .map(|(kind, _)| *kind)
    }

    /// All names with their types, sorted by name.
    pub(crate) fn all(&self) -> Vec<(&'static str, Type)> {
        let named = |(kind, names): &(Type, &'static str)| {
            let kind = *kind;
            names.split_ascii_whitespace().map(move |name| (name, kind))
        };
        let mut all: Vec<_> = self.flags.iter().flat_map(named).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }
}

/// kube-apiserver's, and our own (`kubewright-...`).
pub(crate) const KUBE_APISERVER: Table = Table {
    program: "kube-apiserver",
    flags: &[
        (
            Type::Switch,
            "
            aggregator-reject-forwarding-redirect allow-privileged anonymous-auth
            audit-log-batch-throttle-enable audit-log-compress audit-log-truncate-enabled
            audit-webhook-batch-throttle-enable audit-webhook-truncate-enabled contention-profiling
            disable-http2-serving emulation-forward-compatible enable-aggregator-routing
            enable-bootstrap-token-auth enable-garbage-collector enable-logs-handler
            enable-priority-and-fairness encryption-provider-config-automatic-reload help
            kubewright-admin log-json-split-stream log-text-split-stream permit-address-sharing permit-port-sharing
            profiling runtime-config-emulation-forward-compatible service-account-extend-token-expiration
            service-account-lookup shutdown-send-retry-after version watch-cache
            ",
        ),
        (
            Type::Integer,
            "
            audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-throttle-burst
            audit-log-maxage audit-log-maxbackup audit-log-maxsize audit-log-truncate-max-batch-size
            audit-log-truncate-max-event-size audit-webhook-batch-buffer-size
            audit-webhook-batch-max-size audit-webhook-batch-throttle-burst
            audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size
            default-not-ready-toleration-seconds default-unreachable-toleration-seconds
            delete-collection-workers http2-max-streams-per-connection kubernetes-service-node-port
            lease-reuse-duration-seconds max-connection-bytes-per-sec max-mutating-requests-inflight
            max-requests-inflight min-request-timeout secure-port tls-curve-preferences v
            ",
        ),
        (
            Type::Float,
            "
            audit-log-batch-throttle-qps audit-webhook-batch-throttle-qps goaway-chance
            ",
        ),
        (
            Type::Duration,
            "
            audit-log-batch-max-wait audit-webhook-batch-max-wait audit-webhook-initial-backoff
            authentication-token-webhook-cache-ttl authorization-webhook-cache-authorized-ttl
            authorization-webhook-cache-unauthorized-ttl coordinated-leadership-lease-duration
            coordinated-leadership-renew-deadline coordinated-leadership-retry-period
            etcd-compaction-interval etcd-count-metric-poll-period etcd-db-metric-poll-interval
            etcd-healthcheck-timeout etcd-readycheck-timeout event-ttl kubelet-timeout livez-grace-period
            log-flush-frequency request-timeout service-account-max-token-expiration
            shutdown-delay-duration shutdown-watch-termination-grace-period
            storage-initialization-timeout
            ",
        ),
        (
            Type::Address,
            "
            advertise-address bind-address
            ",
        ),
        (
            Type::Text,
            "
            admission-control admission-control-config-file allow-metric-labels
            allow-metric-labels-manifest api-audiences audit-log-format audit-log-mode audit-log-path
            audit-log-version audit-policy-file audit-webhook-config-file audit-webhook-mode
            audit-webhook-version authentication-config authentication-token-webhook-config-file
            authentication-token-webhook-version authorization-config authorization-mode
            authorization-policy-file authorization-webhook-config-file authorization-webhook-version
            cert-dir client-ca-file cors-allowed-origins debug-socket-path disable-admission-plugins
            disabled-metrics egress-selector-config-file emulated-version enable-admission-plugins
            encryption-provider-config endpoint-reconciler-type etcd-cafile etcd-certfile etcd-keyfile
            etcd-prefix etcd-servers etcd-servers-overrides external-hostname feature-gates
            kubelet-certificate-authority kubelet-client-certificate kubelet-client-key
            kubelet-preferred-address-types kubewright-clock kubewright-controllers kubewright-nodes
            kubewright-record
            log-json-info-buffer-size log-text-info-buffer-size logging-format min-compatibility-version
            oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url
            oidc-required-claim oidc-signing-algs oidc-username-claim oidc-username-prefix
            peer-advertise-ip peer-advertise-port peer-ca-file proxy-client-cert-file
            proxy-client-key-file requestheader-allowed-names requestheader-client-ca-file
            requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers
            requestheader-username-headers runtime-config service-account-issuer service-account-jwks-uri
            service-account-key-file service-account-signing-endpoint service-account-signing-key-file
            service-cluster-ip-range service-node-port-range show-hidden-metrics-for-version
            storage-backend storage-media-type strict-transport-security-directives tls-cert-file
            tls-cipher-suites tls-min-version tls-private-key-file tls-sni-cert-key token-auth-file
            tracing-config-file vmodule watch-cache-sizes
            ",
        ),
    ],
};

/// etcd's.
pub(crate) const ETCD: Table = Table {
    program: "etcd",
    flags: &[
        (
            Type::Switch,
            "
            auto-tls client-cert-auth discovery-insecure-skip-tls-verify discovery-insecure-transport
            enable-distributed-tracing enable-grpc-gateway enable-log-rotation enable-pprof
            experimental-compact-hash-check-enabled experimental-enable-distributed-tracing
            experimental-enable-lease-checkpoint experimental-enable-lease-checkpoint-persist
            experimental-initial-corrupt-check experimental-memory-mlock
            experimental-peer-skip-client-san-verification experimental-stop-grpc-service-on-defrag
            experimental-txn-mode-write-with-shared-buffer force-new-cluster help
            initial-election-tick-advance memory-mlock peer-auto-tls peer-client-cert-auth
            peer-skip-client-san-verification pre-vote socket-reuse-address socket-reuse-port
            strict-reconfig-check unsafe-no-fsync version
            ",
        ),
        (
            Type::Integer,
            "
            auth-token-ttl backend-batch-limit bcrypt-cost bootstrap-defrag-threshold-megabytes
            compaction-batch-limit distributed-tracing-sampling-rate election-timeout
            experimental-bootstrap-defrag-threshold-megabytes experimental-compaction-batch-limit
            experimental-distributed-tracing-sampling-rate experimental-snapshot-catchup-entries
            heartbeat-interval max-learners max-request-bytes max-snapshots max-txn-ops max-wals
            quota-backend-bytes self-signed-cert-validity snapshot-catchup-entries snapshot-count
            ",
        ),
        (
            Type::Duration,
            "
            backend-batch-interval compact-hash-check-time compaction-sleep-interval corrupt-check-time
            discovery-dial-timeout discovery-keepalive-time discovery-keepalive-timeout
            discovery-request-timeout downgrade-check-time experimental-compact-hash-check-time
            experimental-compaction-sleep-interval experimental-corrupt-check-time
            experimental-downgrade-check-time experimental-warning-apply-duration
            experimental-warning-unary-request-duration experimental-watch-progress-notify-interval
            grpc-keepalive-interval grpc-keepalive-min-time grpc-keepalive-timeout raft-read-timeout
            raft-write-timeout warning-apply-duration warning-unary-request-duration
            watch-progress-notify-interval
            ",
        ),
        (
            Type::Text,
            "
            advertise-client-urls auth-token auto-compaction-mode auto-compaction-retention
            backend-bbolt-freelist-type cert-file cipher-suites client-cert-allowed-hostname
            client-cert-file client-crl-file client-key-file config-file cors data-dir discovery
            discovery-cacert discovery-cert discovery-endpoints discovery-fallback discovery-key
            discovery-password discovery-proxy discovery-srv discovery-srv-name discovery-token
            discovery-user distributed-tracing-address distributed-tracing-instance-id
            distributed-tracing-service-name experimental-distributed-tracing-address
            experimental-distributed-tracing-instance-id experimental-distributed-tracing-service-name
            feature-gates host-whitelist initial-advertise-peer-urls initial-cluster
            initial-cluster-state initial-cluster-token key-file listen-client-http-urls
            listen-client-urls listen-metrics-urls listen-peer-urls log-format log-level log-outputs
            log-rotation-config-json logger max-concurrent-streams metrics name peer-cert-allowed-cn
            peer-cert-allowed-hostname peer-cert-file peer-client-cert-file peer-client-key-file
            peer-crl-file peer-key-file peer-trusted-ca-file tls-max-version tls-min-version
            trusted-ca-file v2-deprecation wal-dir
            ",
        ),
    ],
};
