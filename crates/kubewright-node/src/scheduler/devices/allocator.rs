//! The search for devices that do for all requests of a pod's claims on one node (`allocator_incubating.go` of
//! `k8s.io/dynamic-resource-allocation/structured`): one device after the other, and back where it does not go on.
//!
//! Devices that have to be made ready before a pod is bound (`bindingConditions`) are left alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::allocated::Allocated;
use super::capacity::{self, Amounts};
use super::pools::{Device, PoolState, Pools, taken};
use super::selectors::Selectors;

/// As many devices as a claim can have.
const RESULTS: usize = 32;
/// As many devices as are looked for at a time: the search goes as deep.
const DEPTH: usize = 256;
/// As many steps as a search may take. kube-scheduler gives up after ten seconds.
const STEPS: usize = 100_000;

/// A claim that is to be allocated.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    /// `namespace/name`, as messages say it.
    pub(super) name: String,
    /// `spec.devices`.
    pub(super) devices: &'a Value,
}

/// Why there are no devices.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// No choice does.
    Nothing,
    /// Something is wrong with a claim, a class or a pool.
    Because(String),
}

/// What looks at one request: where it stands among the claims, and which alternative it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    claim: usize,
    request: usize,
    alternative: Option<usize>,
}

/// What is known of a request or an alternative.
struct Request<'a> {
    /// Its own name, and that of the request that it is an alternative of.
    name: &'a str,
    parent: Option<&'a str>,
    wanted: &'a Value,
    class: &'a Value,
    count: usize,
    /// All devices that do, where all are asked for.
    all: Option<Vec<usize>>,
}

/// A device that was chosen.
struct Pick {
    place: Place,
    device: usize,
    is_admin: bool,
    share: Option<Amounts>,
}

enum Stop {
    /// A claim would have more devices than it can.
    TooMany,
    Because(String),
}

/// The search on a node.
pub(super) struct Allocator<'a> {
    claims: &'a [Wanted<'a>],
    classes: &'a BTreeMap<String, Value>,
    pools: Pools<'a>,
    allocated: &'a Allocated,
    selectors: &'a Selectors,
    requests: BTreeMap<Place, Request<'a>>,
    matches: BTreeMap<(Place, usize), bool>,
    picks: Vec<Pick>,
    chosen: BTreeMap<(usize, usize), usize>,
    steps: usize,
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

impl<'a> Allocator<'a> {
    pub(super) fn new(
        claims: &'a [Wanted<'a>],
        classes: &'a BTreeMap<String, Value>,
        pools: Pools<'a>,
        allocated: &'a Allocated,
        selectors: &'a Selectors,
    ) -> Self {
        Self {
            claims,
            classes,
            pools,
            allocated,
            selectors,
            requests: BTreeMap::new(),
            matches: BTreeMap::new(),
            picks: Vec::new(),
            chosen: BTreeMap::new(),
            steps: 0,
        }
    }

    /// An allocation for each claim (`status.allocation`). A share of a device has an empty `shareID`, which is the writer's to fill.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn allocate(mut self, node: &str) -> Result<Vec<Value>, Failed> {
        let claims = self.claims;
        let mut total = 0;
        for (claim, wanted) in claims.iter().enumerate() {
            let least = self.read_claim(claim).map_err(Failed::Because)?;
            if least > RESULTS {
                return Err(Failed::Because(format!(
                    "claim {}: number of requested devices {least} exceeds the claim limit of {RESULTS}",
                    wanted.name
                )));
            }
            total += least;
        }
        if total > DEPTH {
            let why = format!("{total} devices are asked for at a time, and {DEPTH} are the most");
            return Err(Failed::Because(why));
        }
        match self.go_on(Place { claim: 0, request: 0, alternative: None }, 0, 0) {
            Ok(true) => Ok((0..claims.len()).map(|claim| self.allocation(claim, node)).collect()),
            Err(Stop::Because(why)) => Err(Failed::Because(why)),
            Ok(false) | Err(Stop::TooMany) => {
                let invalid = self.pools.pools.iter().any(|pool| pool.state == PoolState::Invalid);
                // Kubernetes' message ends in the text of an error that says nothing.
                let why = || Failed::Because("invalid resource pools were encountered".to_owned());
                Err(if invalid { why() } else { Failed::Nothing })
            }
        }
    }

    /// Reads what a claim asks for; says how many devices that is at least.
    fn read_claim(&mut self, claim: usize) -> Result<usize, String> {
        let devices = self.claims[claim].devices;
        let mut least = 0;
        for (request, asked) in list(devices, "requests").iter().enumerate() {
            let name = text(asked, "name");
            let alternatives = list(asked, "firstAvailable");
            if alternatives.is_empty() {
                let place = Place { claim, request, alternative: None };
                least += self.read_request(place, name, None, &asked["exactly"])?;
                continue;
            }
            let mut fewest = usize::MAX;
            for (alternative, one) in alternatives.iter().enumerate() {
                let place = Place { claim, request, alternative: Some(alternative) };
                fewest = fewest.min(self.read_request(place, text(one, "name"), Some(name), one)?);
            }
            least += fewest;
        }
        Ok(least)
    }

    fn read_request(
        &mut self,
        place: Place,
        name: &'a str,
        parent: Option<&'a str>,
        wanted: &'a Value,
    ) -> Result<usize, String> {
        let start = format!("claim {}, request {name}", self.claims[place.claim].name);
        let class_name = text(wanted, "deviceClassName");
        let Some(class) = self.classes.get(class_name) else {
            return Err(format!("{start}: could not retrieve device class {class_name}"));
        };
        let mut request = Request { name, parent, wanted, class, count: 0, all: None };
        match text(wanted, "allocationMode") {
            "ExactCount" => {
                let count = wanted["count"].as_u64().unwrap_or_default();
                request.count = usize::try_from(count).unwrap_or(usize::MAX);
            }
            "All" => {
                for pool in &self.pools.pools {
                    let state = match pool.state {
                        PoolState::Usable => continue,
                        PoolState::Incomplete => "being updated",
                        PoolState::Invalid => "invalid",
                    };
                    return Err(format!(
                        "{start}: asks for all devices, but resource pool {}/{} is currently {state}",
                        pool.driver, pool.name
                    ));
                }
                let mut all = Vec::new();
                for device in 0..self.pools.devices.len() {
                    if self.is_selected(place, &request, device)? && self.has_capacity(&request, device) {
                        all.push(device);
                    }
                }
                request.count = all.len();
                request.all = Some(all);
            }
            other => return Err(format!("{start}: unsupported count mode {other}")),
        }
        let count = request.count;
        self.requests.insert(place, request);
        Ok(count)
    }

    /// Looks for the `nth` device of a request and all that follow; `from` is the first device that is looked at.
    fn go_on(&mut self, place: Place, nth: usize, from: usize) -> Result<bool, Stop> {
        self.steps += 1;
        if self.steps > STEPS {
            return Err(Stop::Because("timed out trying to allocate devices".to_owned()));
        }
        let Some(claim) = self.claims.get(place.claim) else { return Ok(true) };
        let requests = list(claim.devices, "requests");
        let Some(asked) = requests.get(place.request) else {
            let next = Place { claim: place.claim + 1, request: 0, alternative: None };
            return match self.go_on(next, 0, 0) {
                Err(Stop::TooMany) => Ok(false),
                done => done,
            };
        };
        let alternatives = list(asked, "firstAvailable").len();
        if alternatives > 0 && place.alternative.is_none() {
            return self.first_of(place, alternatives);
        }
        let Some(request) = self.requests.get(&place) else { return Ok(false) };
        let (count, all) = (request.count, request.all.clone());
        if all.as_ref().is_some_and(Vec::is_empty) {
            return Ok(false);
        }
        if nth >= count {
            let next = Place { request: place.request + 1, alternative: None, ..place };
            return self.go_on(next, 0, 0);
        }
        let has = self.picks.iter().filter(|pick| pick.place.claim == place.claim).count();
        if has + count - nth > RESULTS {
            return Err(Stop::TooMany);
        }
        if let Some(all) = all {
            let Some(device) = all.get(nth).copied() else { return Ok(false) };
            return self.with(place, nth, device, 0, true);
        }
        for device in from..self.pools.devices.len() {
            if self.with(place, nth, device, device + 1, false)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The first alternative that does.
    fn first_of(&mut self, place: Place, alternatives: usize) -> Result<bool, Stop> {
        let mut all_exceed = true;
        for alternative in 0..alternatives {
            match self.go_on(Place { alternative: Some(alternative), ..place }, 0, 0) {
                Err(Stop::TooMany) => continue,
                Err(stop) => return Err(stop),
                Ok(false) => all_exceed = false,
                Ok(true) => {
                    self.chosen.insert((place.claim, place.request), alternative);
                    return Ok(true);
                }
            }
        }
        if all_exceed { Err(Stop::TooMany) } else { Ok(false) }
    }

    /// Whether the search goes on with this device as the `nth` of a request. `must`: it is one of all that are asked for.
    fn with(
        &mut self,
        place: Place,
        nth: usize,
        device: usize,
        next: usize,
        must: bool,
    ) -> Result<bool, Stop> {
        let Some(pick) = self.pick(place, device, must).map_err(Stop::Because)? else { return Ok(false) };
        self.picks.push(pick);
        let done = self.go_on(place, nth + 1, next);
        if !matches!(done, Ok(true)) {
            self.picks.pop();
        }
        done
    }

    /// The device for a request, if it can have it beside what is picked.
    fn pick(&mut self, place: Place, index: usize, must: bool) -> Result<Option<Pick>, String> {
        let device = self.pools.devices[index];
        let Some(request) = self.requests.remove(&place) else { return Ok(None) };
        let picked = self.try_pick(place, &request, index, device, must);
        self.requests.insert(place, request);
        picked
    }

    fn try_pick(
        &mut self,
        place: Place,
        request: &Request<'a>,
        index: usize,
        device: Device<'a>,
        must: bool,
    ) -> Result<Option<Pick>, String> {
        let is_admin = request.wanted["adminAccess"] == true;
        let is_shared = device.device["allowMultipleAllocations"] == true;
        let same = |pick: &&Pick| pick.device == index && pick.share.is_none();
        let of_claim = self.picks.iter().filter(same).any(|pick| pick.place.claim == place.claim);
        let is_taken = self.allocated.is_taken(&device.id) || self.picks.iter().any(|pick| same(&pick));
        if (is_admin && of_claim) || (!is_admin && is_taken) {
            return Ok(None);
        }
        if !must && !self.is_selected(place, request, index)? {
            return Ok(None);
        }
        if !self.has_counters(index, is_shared) || is_tainted(device.device, request.wanted) {
            return Ok(None);
        }
        if !self.keeps_constraints(place, request, device) {
            if must {
                return Err(format!(
                    "claim {}, request {}: cannot add device {} because a claim constraint would not be satisfied",
                    self.claims[place.claim].name,
                    request.name,
                    device.id.join("/")
                ));
            }
            return Ok(None);
        }
        if !self.has_capacity(request, index) {
            return Ok(None);
        }
        let share = if is_shared { capacity::consumed(request.wanted, device.device) } else { None };
        Ok(Some(Pick { place, device: index, is_admin, share }))
    }

    /// Whether the class and the request select a device.
    fn is_selected(&mut self, place: Place, request: &Request<'a>, index: usize) -> Result<bool, String> {
        if let Some(known) = self.matches.get(&(place, index)) {
            return Ok(*known);
        }
        let device = self.pools.devices[index];
        let of_claim = || format!("claim {}", self.claims[place.claim].name);
        let of_class = || format!("class {}", text(request.wanted, "deviceClassName"));
        let is_selected = list(device.device, "bindingConditions").is_empty()
            && self.selectors.match_all(list(&request.class["spec"], "selectors"), &device, &of_class)?
            && self.selectors.match_all(list(request.wanted, "selectors"), &device, &of_claim)?;
        self.matches.insert((place, index), is_selected);
        Ok(is_selected)
    }

    fn has_capacity(&self, request: &Request<'a>, index: usize) -> bool {
        let device = self.pools.devices[index];
        let Some(taken) = capacity::consumed(request.wanted, device.device) else { return false };
        let mut used: Vec<&Amounts> = self.allocated.shared(&device.id).into_iter().collect();
        let picked = self.picks.iter().filter(|pick| pick.device == index);
        used.extend(picked.filter_map(|pick| pick.share.as_ref()));
        capacity::fits(&taken, &used, device.device)
    }

    /// Whether the counters that the device takes of have as much. A device that is shared takes once.
    fn has_counters(&self, index: usize, is_shared: bool) -> bool {
        let device = self.pools.devices[index];
        let is_in_use = || {
            self.allocated.shared(&device.id).is_some() || self.picks.iter().any(|pick| pick.device == index)
        };
        if is_shared && is_in_use() {
            return true;
        }
        let mut left = self.pools.pools[device.pool].counters.clone();
        let mut indices: Vec<usize> = self.picks.iter().map(|pick| pick.device).collect();
        indices.push(index);
        indices.sort_unstable();
        indices.dedup();
        let others = indices.into_iter().map(|index| self.pools.devices[index]);
        for (counter, amount) in
            others.filter(|other| other.pool == device.pool).flat_map(|other| taken(other.device))
        {
            if let Some(known) = left.get_mut(&counter) {
                *known = *known - amount;
            }
        }
        taken(device.device).all(|(counter, _)| left.get(&counter).is_some_and(|left| left.sign().is_ge()))
    }

    fn keeps_constraints(&self, place: Place, request: &Request<'a>, device: Device<'a>) -> bool {
        let applies = |constraint: &Value, request: &Request<'_>| {
            let named = list(constraint, "requests");
            let is_named = |name: &str| named.iter().any(|one| one.as_str() == Some(name));
            named.is_empty()
                || match request.parent {
                    None => is_named(request.name),
                    Some(parent) => is_named(parent) || is_named(&format!("{parent}/{}", request.name)),
                }
        };
        list(self.claims[place.claim].devices, "constraints").iter().all(|constraint| {
            if !applies(constraint, request) {
                return true;
            }
            let same = constraint["matchAttribute"].as_str();
            let Some(name) = same.or_else(|| constraint["distinctAttribute"].as_str()) else { return false };
            let Some(value) = attribute(&device, name) else { return false };
            let others = self.picks.iter().filter(|pick| pick.place.claim == place.claim);
            let mut others = others.filter(|pick| {
                // That of the request itself is not among the others while it is asked.
                pick.place == place
                    || self.requests.get(&pick.place).is_some_and(|other| applies(constraint, other))
            });
            others.all(|pick| {
                (attribute(&self.pools.devices[pick.device], name) == Some(value)) == same.is_some()
            })
        })
    }

    /// What was picked for a claim, as its status says it.
    fn allocation(&self, claim: usize, node: &str) -> Value {
        let picks = || self.picks.iter().filter(|pick| pick.place.claim == claim);
        let results: Vec<Value> = picks().filter_map(|pick| self.result(pick)).collect();
        let devices = picks().map(|pick| self.pools.devices[pick.device]).collect::<Vec<_>>();
        let mut allocation = json!({"devices": {"results": results}});
        let config = self.config(claim);
        if !config.is_empty() {
            allocation["devices"]["config"] = config.into();
        }
        if let Some(selector) = node_selector(&devices, node) {
            allocation["nodeSelector"] = selector;
        }
        allocation
    }

    fn result(&self, pick: &Pick) -> Option<Value> {
        let request = self.requests.get(&pick.place)?;
        let [driver, pool, device] = self.pools.devices[pick.device].id;
        let mut result =
            json!({"request": request.full_name(), "driver": driver, "pool": pool, "device": device});
        if pick.is_admin {
            result["adminAccess"] = true.into();
        }
        if !list(request.wanted, "tolerations").is_empty() {
            result["tolerations"] = request.wanted["tolerations"].clone();
        }
        if let Some(share) = &pick.share {
            result["shareID"] = "".into();
            let amounts = share.iter().map(|(name, amount)| (name.clone(), amount.to_string().into()));
            let amounts: serde_json::Map<String, Value> = amounts.collect();
            if !amounts.is_empty() {
                result["consumedCapacity"] = amounts.into();
            }
        }
        Some(result)
    }

    /// What drivers are told: by each class once, then by the claim.
    fn config(&self, claim: usize) -> Vec<Value> {
        let devices = self.claims[claim].devices;
        let chosen = |request: usize| {
            let alternative = self.chosen.get(&(claim, request)).copied();
            self.requests.get(&Place { claim, request, alternative })
        };
        let requests: Vec<&Request<'_>> = (0..list(devices, "requests").len()).filter_map(chosen).collect();
        let mut config = Vec::new();
        let mut classes: Vec<(&str, Vec<String>)> = Vec::new();
        for request in &requests {
            let class = text(request.wanted, "deviceClassName");
            match classes.iter_mut().find(|(known, _)| *known == class) {
                Some((_, names)) => names.push(request.full_name()),
                None => classes.push((class, vec![request.full_name()])),
            }
        }
        for (class, names) in classes {
            let of_class = self.classes.get(class).map_or(&[][..], |class| list(&class["spec"], "config"));
            config.extend(
                of_class
                    .iter()
                    .map(|one| json!({"source": "FromClass", "requests": names, "opaque": one["opaque"]})),
            );
        }
        for one in list(devices, "config") {
            let named = list(one, "requests");
            let is_named = |name: &str| named.iter().any(|one| one.as_str() == Some(name));
            let meant = |request: &&&Request<'_>| {
                is_named(request.parent.unwrap_or(request.name)) || is_named(&request.full_name())
            };
            let times = if named.is_empty() { 1 } else { requests.iter().filter(meant).count() };
            for _ in 0..times {
                let mut copy = json!({"source": "FromClaim", "opaque": one["opaque"]});
                if !named.is_empty() {
                    copy["requests"] = named.into();
                }
                config.push(copy);
            }
        }
        config
    }
}

impl Request<'_> {
    fn full_name(&self) -> String {
        self.parent.map_or_else(|| self.name.to_owned(), |parent| format!("{parent}/{}", self.name))
    }
}

/// The value of an attribute by its full name; one of the driver's own domain may stand there without.
fn attribute<'a>(device: &Device<'a>, name: &str) -> Option<&'a Value> {
    let attributes = device.device.get("attributes")?;
    attributes.get(name).or_else(|| {
        let (domain, id) = name.split_once('/')?;
        (domain == device.id[0]).then(|| attributes.get(id)).flatten()
    })
}

/// Whether the device has a taint that keeps pods off, and that the request does not tolerate.
fn is_tainted(device: &Value, request: &Value) -> bool {
    list(device, "taints").iter().any(|taint| {
        let effect = text(taint, "effect");
        let tolerates = |toleration: &Value| {
            let is_any_or = |field: &str| {
                let wanted = text(toleration, field);
                wanted.is_empty() || wanted == text(taint, field)
            };
            is_any_or("effect")
                && is_any_or("key")
                && match text(toleration, "operator") {
                    "" | "Equal" => text(toleration, "value") == text(taint, "value"),
                    other => other == "Exists",
                }
        };
        matches!(effect, "NoSchedule" | "NoExecute") && !list(request, "tolerations").iter().any(tolerates)
    })
}

/// The nodes that can use all these devices (`createNodeSelector`).
fn node_selector(devices: &[Device<'_>], node: &str) -> Option<Value> {
    let (mut fields, mut expressions) = (Vec::new(), Vec::new());
    for device in devices {
        let part = if device.slice["perDeviceNodeSelection"] == true { device.device } else { device.slice };
        if !text(part, "nodeName").is_empty() || device.device["bindsToNode"] == true {
            let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
            return Some(json!({"nodeSelectorTerms": [{"matchFields": [field]}]}));
        }
        for term in list(&part["nodeSelector"], "nodeSelectorTerms") {
            for (from, to) in [("matchFields", &mut fields), ("matchExpressions", &mut expressions)] {
                for requirement in list(term, from) {
                    if !to.contains(requirement) {
                        to.push(requirement.clone());
                    }
                }
            }
        }
    }
    let mut term = json!({});
    for (name, requirements) in [("matchFields", fields), ("matchExpressions", expressions)] {
        if !requirements.is_empty() {
            term[name] = requirements.into();
        }
    }
    (term != json!({})).then(|| json!({"nodeSelectorTerms": [term]}))
}
