//! What a Lease says about who leads, as client-go reads and writes it.

use std::time::Duration;

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

/// The fields of a Lease by which a leader is elected (`LeaderElectionRecord` in
/// `k8s.io/client-go/tools/leaderelection/resourcelock`). `preferredHolder` and `strategy`, of coordinated leader
/// election, are neither looked at nor changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Empty when nobody holds the lease.
    pub(crate) holder: String,
    /// By the record: what another candidate waits for is what the holder promised, not what it would promise itself.
    pub(crate) duration: Duration,
    pub(crate) acquired: Option<Timestamp>,
    pub(crate) renewed: Option<Timestamp>,
    /// How often the lease got another holder.
    pub(crate) transitions: i32,
}

impl Record {
    pub(crate) fn of(spec: Option<&LeaseSpec>) -> Self {
        let spec = spec.cloned().unwrap_or_default();
        let seconds = spec.lease_duration_seconds.unwrap_or_default();
        Self {
            holder: spec.holder_identity.unwrap_or_default(),
            duration: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// Makes `spec` say this.
    pub(crate) fn write(&self, spec: &mut LeaseSpec) {
        spec.holder_identity = Some(self.holder.clone());
        spec.lease_duration_seconds = Some(i32::try_from(self.duration.as_secs()).unwrap_or(i32::MAX));
        spec.acquire_time = self.acquired.map(MicroTime);
        spec.renew_time = self.renewed.map(MicroTime);
        spec.lease_transitions = Some(self.transitions);
    }
}

/// `time` as a Lease can tell it: to the microsecond.
pub(crate) fn as_micro_time(time: Timestamp) -> Timestamp {
    let micros = TimestampRound::new().smallest(Unit::Microsecond).mode(RoundMode::Trunc);
    time.round(micros).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_written_as_client_go_writes_it() {
        let time = as_micro_time(SIMULATION_START + Duration::from_nanos(1_234_567));
        let record = Record {
            holder: "a_1".into(),
            duration: Duration::from_secs(15),
            acquired: Some(SIMULATION_START),
            renewed: Some(time),
            transitions: 3,
        };
        let mut spec = LeaseSpec { strategy: Some("OldestEmulationVersion".into()), ..LeaseSpec::default() };
        record.write(&mut spec);
        assert_eq!(
            kubewright_objects::to_value(&spec).ok(),
            Some(json!({
                "acquireTime": "2026-01-01T00:00:00.000000Z",
                "holderIdentity": "a_1",
                "leaseDurationSeconds": 15,
                "leaseTransitions": 3,
                "renewTime": "2026-01-01T00:00:00.001234Z",
                "strategy": "OldestEmulationVersion",
            }))
        );
        assert_eq!(Record::of(Some(&spec)), record);
    }

    #[test]
    fn an_empty_lease_is_held_by_nobody_and_for_no_time() {
        let record = Record::of(None);
        assert_eq!((record.holder.as_str(), record.duration), ("", Duration::ZERO));
        let odd = LeaseSpec { lease_duration_seconds: Some(-5), ..LeaseSpec::default() };
        assert_eq!(Record::of(Some(&odd)).duration, Duration::ZERO);
    }
}
