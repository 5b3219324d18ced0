//! The cluster addresses of a service, one of each of its families.

use std::net::IpAddr;

use kubewright_meta::FieldError;
use kubewright_meta::cidr::{Cidr, Family};
use serde_json::{Map, Value, json};

use super::networks::is_held;
use super::{Ranges, Refusal, Taken, has_addresses, reserved, text, texts};

impl Ranges<'_> {
    /// Gives a service the addresses that it lacks, and checks those that it has chosen. An update of one that has addresses
    /// changes at most the second.
    pub(super) fn allocate_addresses(
        &self,
        name: &str,
        spec: &mut Map<String, Value>,
        before: Option<&Value>,
        taken: &Taken,
    ) -> Result<(), Refusal> {
        let before = before.filter(|before| before["type"].as_str().is_some_and(has_addresses));
        let headless = |first: Option<&str>| first == Some("None");
        if !has_addresses(text(spec, "type"))
            || headless(spec.get("clusterIPs").and_then(|list| texts(list).next()))
            || before.is_some_and(|before| headless(texts(&before["clusterIPs"]).next()))
            // One that a write to its status created has none, and gets none later.
            || before.is_some_and(|before| texts(&before["clusterIPs"]).next().is_none())
        {
            return Ok(());
        }
        let families: Vec<Family> =
            spec.get("ipFamilies").into_iter().flat_map(texts).filter_map(Family::named).collect();
        let given: Vec<String> =
            spec.get("clusterIPs").into_iter().flat_map(texts).map(str::to_owned).collect();
        let kept = before.map_or(0, |before| texts(&before["clusterIPs"]).count());
        let mut chosen: Vec<String> = Vec::new();
        for (at, family) in families.into_iter().enumerate() {
            let asked = given.get(at).map(String::as_str).unwrap_or_default();
            let address = match asked {
                _ if at < kept && !asked.is_empty() => asked.to_owned(),
                "" => self.free_address(family, taken).ok_or_else(|| {
                    Refusal::Server(format!(
                        "failed to allocate a serviceIP for Service {name:?}: range is full"
                    ))
                })?,
                asked => {
                    self.usable(asked, family, taken).map_err(|why| {
                        let why = format!("failed to allocate IP {asked}: {why}");
                        FieldError::invalid("spec.clusterIPs", json!(given), why)
                    })?;
                    asked.to_owned()
                }
            };
            chosen.push(address);
        }
        if let Some(first) = chosen.first() {
            spec.insert("clusterIP".into(), first.as_str().into());
            spec.insert("clusterIPs".into(), json!(chosen));
        }
        Ok(())
    }

    /// An address that nobody has: by chance, of those that are not reserved for clients who choose, else of these.
    fn free_address(&self, family: Family, taken: &Taken) -> Option<String> {
        let mut networks = self.ready_networks().into_iter().filter(|cidr| cidr.family() == family);
        if self.dry_run {
            // No service has it: it stands for one that would be chosen.
            return networks.next().map(|cidr| cidr.address(0).to_string());
        }
        networks.find_map(|cidr| self.free_address_of(cidr, taken))
    }

    fn free_address_of(&self, cidr: Cidr, taken: &Taken) -> Option<String> {
        let last = cidr.last_place();
        let band = reserved(cidr.len(), 16, 256, 16);
        let own = self.settings.service_cidrs.api_server();
        let from = |first: u128, last: u128| {
            let size = (last + 1).saturating_sub(first);
            let start = self.dice.below(usize::try_from(size).unwrap_or(usize::MAX).max(1)) as u128;
            (0..size)
                .map(move |step| cidr.address(first + (start + step) % size))
                .find(|address| *address != own && !self.is_taken(*address, taken))
        };
        let upper = from(1 + band, last);
        upper.or_else(|| from(1, band.min(last))).map(|address| address.to_string())
    }

    fn usable(&self, asked: &str, family: Family, taken: &Taken) -> Result<(), String> {
        let out_of_range = || "the provided network does not match the current range".to_owned();
        let address: IpAddr = asked.parse().map_err(|_| out_of_range())?;
        let networks = self.ready_networks();
        let offers = |cidr: &Cidr| cidr.family() == family && cidr.offers(address);
        if networks.iter().any(offers) {
            let taken = !self.dry_run && self.is_taken(address, taken);
            return if taken { Err("provided IP is already allocated".to_owned()) } else { Ok(()) };
        }
        let first = networks.iter().find(|cidr| cidr.family() == family).filter(|_| self.dry_run);
        Err(first.map_or_else(out_of_range, |range| {
            format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is {range}"
            )
        }))
    }

    /// Whether a service has the address, or somebody holds it by an IPAddress.
    fn is_taken(&self, address: IpAddr, taken: &Taken) -> bool {
        taken.addresses.contains(&address) || is_held(self.kinds, &self.snapshot, address)
    }
}
