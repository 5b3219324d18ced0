//! The node ports of a service, and the port at which its health is asked.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_meta::{FieldError, object};
use serde_json::{Map, Value};

use super::{Ranges, Refusal, reserved, text};

/// The ports that stand for those which a dry run does not choose come after this one (`PortAllocationOperation`).
const BEFORE_STAND_INS: u64 = 32768;

/// The node ports of a service.
pub(super) fn of(spec: &Value) -> impl Iterator<Item = u64> {
    let ports = spec["ports"].as_array().into_iter().flatten();
    ports.map(node_port).filter(|number| *number != 0)
}

fn node_port(port: &Value) -> u64 {
    port["nodePort"].as_u64().unwrap_or(0)
}

impl Ranges<'_> {
    /// Gives a service the ports that it lacks, and checks those that it has chosen.
    pub(super) fn allocate_ports(
        &self,
        spec: &mut Map<String, Value>,
        before: Option<&Value>,
        mut taken: BTreeSet<u64>,
    ) -> Result<(), Refusal> {
        let reachable = matches!(text(spec, "type"), "NodePort" | "LoadBalancer");
        let chooses = text(spec, "type") == "NodePort"
            || spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
        // What a service has had stays its own until it is written.
        let own: BTreeSet<u64> = before.map(|before| of(before).collect()).unwrap_or_default();
        let checked =
            before.and_then(|before| before["healthCheckNodePort"].as_u64()).filter(|port| *port != 0);
        taken.extend(checked);
        if reachable && let Some(Value::Array(list)) = spec.get_mut("ports") {
            self.refuse_negative(list)?;
            match before {
                None => self.ports_of_new(list, chooses, &mut taken)?,
                Some(_) => self.ports_of_changed(list, chooses, &own, &mut taken)?,
            }
        }
        taken.extend(own);
        self.allocate_health_check(spec, before, &mut taken)
    }

    fn refuse_negative(&self, list: &[Value]) -> Result<(), FieldError> {
        for (at, port) in list.iter().enumerate() {
            let asked = port["nodePort"].as_i64().filter(|asked| *asked < 0);
            if let Some(asked) = asked {
                return Err(FieldError::invalid(
                    format!("spec.ports[{at}].nodePort"),
                    asked,
                    self.out_of_range(),
                ));
            }
        }
        Ok(())
    }

    fn out_of_range(&self) -> String {
        let range = &self.settings.node_ports;
        format!("provided port is not in the valid range. The range of valid ports is {range}")
    }

    /// The same number for the same port, whatever the protocol; the first node port that somebody asks for it counts.
    fn ports_of_new(
        &self,
        list: &mut [Value],
        chooses: bool,
        taken: &mut BTreeSet<u64>,
    ) -> Result<(), Refusal> {
        // What is no port is checked later.
        let number_of = |port: &Value| port["port"].as_i64().unwrap_or(0);
        let mut by_port: BTreeMap<i64, u64> = BTreeMap::new();
        for at in 0..list.len() {
            let (number, asked) = (number_of(&list[at]), node_port(&list[at]));
            if asked == 0 && !chooses {
                continue;
            }
            let given = match by_port.get(&number) {
                Some(known) if asked == 0 || asked == *known => *known,
                Some(_) => self.take(at, asked, taken)?,
                None => {
                    let requested = list.iter().filter(|other| number_of(other) == number);
                    let requested = requested.map(node_port).find(|number| *number != 0);
                    let given = match requested {
                        Some(requested) => self.take(at, requested, taken)?,
                        None => self.free_port(taken).ok_or_else(no_port)?,
                    };
                    by_port.insert(number, given);
                    given
                }
            };
            taken.insert(given);
            object::as_map(&mut list[at]).insert("nodePort".into(), given.into());
        }
        Ok(())
    }

    fn ports_of_changed(
        &self,
        list: &mut [Value],
        chooses: bool,
        own: &BTreeSet<u64>,
        taken: &mut BTreeSet<u64>,
    ) -> Result<(), Refusal> {
        let mut new = BTreeSet::new();
        let mut with_protocol = BTreeSet::new();
        for (at, port) in list.iter_mut().enumerate() {
            let asked = node_port(port);
            let given = match asked {
                0 if !chooses => continue,
                0 => {
                    taken.extend(own);
                    self.free_port(taken).ok_or_else(no_port)?
                }
                asked if own.contains(&asked) || new.contains(&asked) => asked,
                asked => self.take(at, asked, taken)?,
            };
            new.insert(given);
            taken.insert(given);
            // Two entries take over the node port of an old one that both are like: `updateNodePorts` comes before validation.
            let protocol = port["protocol"].as_str().unwrap_or_default();
            if !with_protocol.insert((protocol.to_owned(), given)) {
                return Err(Refusal::Unexplained(format!("duplicate nodePort: {{{protocol} {given}}}")));
            }
            object::as_map(port).insert("nodePort".into(), given.into());
        }
        Ok(())
    }

    /// The port of a load balancer that only asks the nodes that have a pod.
    fn allocate_health_check(
        &self,
        spec: &mut Map<String, Value>,
        before: Option<&Value>,
        taken: &mut BTreeSet<u64>,
    ) -> Result<(), Refusal> {
        let needs = |kind: &str, policy: &str| kind == "LoadBalancer" && policy == "Local";
        let needed = before.is_some_and(|before| {
            needs(
                before["type"].as_str().unwrap_or_default(),
                before["externalTrafficPolicy"].as_str().unwrap_or_default(),
            )
        });
        if needed || !needs(text(spec, "type"), text(spec, "externalTrafficPolicy")) {
            return Ok(());
        }
        let given = spec.get("healthCheckNodePort").and_then(Value::as_i64).unwrap_or(0);
        let Ok(asked) = u64::try_from(given) else {
            if self.dry_run {
                return Ok(());
            }
            let why = self.out_of_range();
            return Err(Refusal::Server(format!(
                "failed to allocate requested HealthCheck NodePort {given}: {why}"
            )));
        };
        let port = match asked {
            0 => self.free_port(taken).ok_or_else(|| {
                Refusal::Server("failed to allocate a HealthCheck NodePort 0: range is full".to_owned())
            })?,
            asked => self.port_usable(asked, taken).map(|()| asked).map_err(|why| {
                Refusal::Server(format!("failed to allocate requested HealthCheck NodePort {asked}: {why}"))
            })?,
        };
        spec.insert("healthCheckNodePort".into(), port.into());
        Ok(())
    }

    fn take(&self, at: usize, asked: u64, taken: &BTreeSet<u64>) -> Result<u64, FieldError> {
        let refuse = |why| FieldError::invalid(format!("spec.ports[{at}].nodePort"), asked, why);
        self.port_usable(asked, taken).map(|()| asked).map_err(refuse)
    }

    fn port_usable(&self, asked: u64, taken: &BTreeSet<u64>) -> Result<(), String> {
        if !self.dry_run && !self.settings.node_ports.contains(asked) {
            return Err(self.out_of_range());
        }
        if taken.contains(&asked) {
            return Err("provided port is already allocated".to_owned());
        }
        self.note_port(asked);
        Ok(())
    }

    fn note_port(&self, port: u64) {
        self.largest_port.set(self.largest_port.get().max(Some(port)));
    }

    /// A port that nobody has: by chance, of those that are not reserved for clients who choose, else of these.
    fn free_port(&self, taken: &BTreeSet<u64>) -> Option<u64> {
        if self.dry_run {
            let port = self.largest_port.get().unwrap_or(BEFORE_STAND_INS) + 1;
            self.note_port(port);
            return Some(port);
        }
        let range = &self.settings.node_ports;
        let size = range.len();
        let band = usize::try_from(reserved(size as u128, 16, 128, 32)).unwrap_or(0);
        let from = |first: usize, size: usize| {
            let start = self.dice.below(size.max(1));
            (0..size)
                .map(move |step| range.port(first + (start + step) % size))
                .find(|port| !taken.contains(port))
        };
        from(band, size - band).or_else(|| from(0, band))
    }
}

fn no_port() -> Refusal {
    Refusal::Server("failed to allocate a nodePort: range is full".to_owned())
}
