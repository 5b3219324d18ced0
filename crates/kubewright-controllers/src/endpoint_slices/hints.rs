//! For whom an endpoint is meant (`staging/src/k8s.io/endpointslice/trafficdist`).

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone};

use super::{endpoints, endpoints_mut};

/// How a Service wants its traffic distributed (`spec.trafficDistribution`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distribution {
    /// Everywhere.
    Cluster,
    /// In the client's zone first.
    Zone,
    /// On the client's node first, then in its zone.
    Node,
}

impl Distribution {
    /// As a Service spells it; what it does not know is everywhere.
    pub(super) fn of(name: Option<&str>) -> Self {
        match name {
            Some("PreferClose" | "PreferSameZone") => Self::Zone,
            Some("PreferSameNode") => Self::Node,
            _ => Self::Cluster,
        }
    }

    /// Whether a slice has hints that it should not have, or lacks some.
    pub(super) fn differs(self, slice: &EndpointSlice) -> bool {
        endpoints(slice).iter().any(|endpoint| self.hints(endpoint) != endpoint.hints)
    }

    /// Gives each endpoint of the slice its hints.
    pub(super) fn apply(self, slice: &mut EndpointSlice) {
        for endpoint in endpoints_mut(slice).into_iter().flatten() {
            endpoint.hints = self.hints(endpoint);
        }
    }

    /// Those of an endpoint that is not ready stay as they are while there are any to give.
    fn hints(self, endpoint: &Endpoint) -> Option<EndpointHints> {
        let is_ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true);
        match self {
            Self::Cluster => return None,
            Self::Zone | Self::Node if !is_ready => return endpoint.hints.clone(),
            Self::Zone | Self::Node => {}
        }
        let zone = endpoint.zone.clone().map(|name| vec![ForZone { name }]);
        let node =
            endpoint.node_name.clone().filter(|_| self == Self::Node).map(|name| vec![ForNode { name }]);
        (zone.is_some() || node.is_some()).then_some(EndpointHints { for_nodes: node, for_zones: zone })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(ready: bool) -> EndpointSlice {
        kubewright_objects::from_value(json!({"addressType": "IPv4", "metadata": {}, "endpoints": [
            {"addresses": ["10.0.0.1"], "conditions": {"ready": ready}, "zone": "z", "nodeName": "n"}]}))
        .expect("a slice")
    }

    #[test]
    fn zone_and_node_are_hinted_at_as_the_service_asks() {
        for (name, hints) in [
            (None, json!(null)),
            (Some("PreferSameZone"), json!({"forZones": [{"name": "z"}]})),
            (Some("PreferSameNode"), json!({"forZones": [{"name": "z"}], "forNodes": [{"name": "n"}]})),
        ] {
            let mut slice = slice(true);
            Distribution::of(name).apply(&mut slice);
            assert_eq!(json!(endpoints(&slice)[0].hints), hints, "{name:?}");
            assert!(!Distribution::of(name).differs(&slice));
        }
    }

    #[test]
    fn who_is_not_ready_gets_no_hint() {
        assert!(!Distribution::Zone.differs(&slice(false)));
        assert!(Distribution::Zone.differs(&slice(true)));
    }
}
