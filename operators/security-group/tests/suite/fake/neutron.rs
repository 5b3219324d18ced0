//! Neutron: security groups, ports, and what ports need.

use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use super::{
    Answer, Recorded, keystone, rules,
    state::{State, bump},
};

/// What a project may have unless it was told otherwise.
const GROUPS: i64 = 10;
const RULES: i64 = 100;

pub(crate) fn answer(state: &mut State, asked: &Recorded) -> (StatusCode, Value, Option<HeaderValue>) {
    let Some(project) = keystone::project(state, asked) else {
        return (StatusCode::UNAUTHORIZED, keystone::unauthorized(), None);
    };
    let path: Vec<&str> = asked.path[1..].iter().map(String::as_str).collect();
    let (status, body) = route(state, asked, &project, &path).unwrap_or_else(|refusal| refusal);
    (status, body, None)
}

fn route(state: &mut State, asked: &Recorded, project: &str, path: &[&str]) -> Result<Answer, Answer> {
    match (&asked.method, path) {
        (&Method::GET, ["security-groups"]) => {
            Ok(list("security_groups", state.groups.values(), asked, project))
        }
        (&Method::POST, ["security-groups"]) => create_group(state, project, &asked.body["security_group"]),
        (&Method::GET, ["security-groups", id]) => {
            Ok((StatusCode::OK, json!({"security_group": group(state, project, id)?})))
        }
        (&Method::PUT, ["security-groups", id]) => {
            group(state, project, id)?;
            let group = state.groups.get_mut(*id).expect("just seen");
            for (name, value) in asked.body["security_group"].as_object().into_iter().flatten() {
                group[name] = value.clone();
            }
            bump(group);
            Ok((StatusCode::OK, json!({"security_group": group})))
        }
        (&Method::PUT, ["security-groups", id, "tags"]) => {
            group(state, project, id)?;
            let group = state.groups.get_mut(*id).expect("just seen");
            group["tags"] = asked.body["tags"].clone();
            bump(group);
            Ok((StatusCode::OK, json!({"tags": group["tags"]})))
        }
        (&Method::DELETE, ["security-groups", id]) => delete_group(state, project, id),
        (&Method::POST, ["security-group-rules"]) => {
            let wanted = &asked.body["security_group_rule"];
            let id = wanted["security_group_id"].as_str().unwrap_or_default();
            group(state, project, id)?;
            let all: usize = owned(state, project).map(|group| rules::of(group).len()).sum();
            below(state, project, "security_group_rule", RULES, all)?;
            rules::create(state, id, wanted)
        }
        (&Method::PUT, ["security-group-rules", _]) => {
            Err(refused(400, "HTTPBadRequest", "Cannot update read-only attribute"))
        }
        (&Method::DELETE, ["security-group-rules", id]) => rules::delete(state, project, id),
        (&Method::GET, ["ports"]) => Ok(list("ports", state.ports.values(), asked, project)),
        (&Method::POST, ["ports"]) => create_port(state, project, &asked.body["port"]),
        (&Method::GET, ["ports", id]) => Ok((StatusCode::OK, json!({"port": port(state, project, id)?}))),
        (&Method::PUT, ["ports", id]) => update_port(state, project, id, asked),
        (&Method::DELETE, ["ports", id]) => delete_port(state, project, id),
        (&Method::POST, ["networks"]) => {
            Ok(create("network", &mut state.networks, &state.world, &asked.body))
        }
        (&Method::POST, ["subnets"]) => Ok(create("subnet", &mut state.subnets, &state.world, &asked.body)),
        (&Method::DELETE, ["networks", id]) => {
            state.networks.remove(*id);
            Ok((StatusCode::NO_CONTENT, Value::Null))
        }
        (&Method::PUT, ["quotas", id]) => {
            let quota = asked.body["quota"].as_object().cloned().unwrap_or_default();
            state.quotas.entry((*id).to_owned()).or_default().extend(quota);
            Ok((StatusCode::OK, asked.body.clone()))
        }
        (&Method::DELETE, ["quotas", id]) => {
            state.quotas.remove(*id);
            Ok((StatusCode::NO_CONTENT, Value::Null))
        }
        _ => Err(refused(404, "HTTPNotFound", "The resource could not be found.")),
    }
}

pub(crate) fn refused(status: u16, kind: &str, message: &str) -> Answer {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, json!({"NeutronError": {"type": kind, "message": message, "detail": ""}}))
}

fn sees(project: &str, object: &Value) -> bool {
    project == "admin" || object["project_id"] == project
}

fn owned<'a>(state: &'a State, project: &'a str) -> impl Iterator<Item = &'a Value> {
    state.groups.values().filter(move |group| group["project_id"] == project)
}

pub(crate) fn group<'a>(state: &'a State, project: &str, id: &str) -> Result<&'a Value, Answer> {
    let found = state.groups.get(id).filter(|group| sees(project, group));
    found.ok_or_else(|| refused(404, "SecurityGroupNotFound", &format!("Security group {id} does not exist")))
}

fn port<'a>(state: &'a State, project: &str, id: &str) -> Result<&'a Value, Answer> {
    let found = state.ports.get(id).filter(|port| sees(project, port));
    found.ok_or_else(|| refused(404, "PortNotFound", &format!("Port {id} could not be found.")))
}

/// The objects that the project sees and the query means, by the page.
fn list<'a>(name: &str, all: impl Iterator<Item = &'a Value>, asked: &Recorded, project: &str) -> Answer {
    let means = |object: &&Value| {
        let filters = ["id", "name", "description", "project_id", "device_id"];
        let plain = filters.into_iter().all(|field| {
            let values = asked.filter(field);
            values.is_empty() || values.iter().any(|value| object[field] == *value)
        });
        let has = |field: &str, query: &str| {
            let values = asked.filter(query);
            let all = object[field].as_array();
            values.is_empty()
                || values.iter().any(|value| all.is_some_and(|all| all.contains(&(*value).into())))
        };
        sees(project, object) && plain && has("tags", "tags") && has("security_groups", "security_groups")
    };
    let marker = asked.filter("marker").first().copied().unwrap_or_default().to_owned();
    let limit = asked.filter("limit").first().and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
    let after = all.filter(means).skip_while(|object| {
        !marker.is_empty() && object["id"].as_str().is_some_and(|id| id <= marker.as_str())
    });
    let page: Vec<&Value> = after.take(limit).collect();
    let mut body = json!({ name: page });
    if page.len() == limit {
        let last = page.last().map_or("", |object| object["id"].as_str().unwrap_or_default());
        let others = asked.query.iter().filter(|(key, _)| key != "marker");
        let query: Vec<String> = others.map(|(key, value)| format!("{key}={}", quoted(value))).collect();
        let path = asked.path.join("/");
        let href = format!("http://proxy.test/{path}?{}&marker={last}", query.join("&"));
        body[format!("{name}_links")] = json!([{"rel": "next", "href": href}]);
    }
    (StatusCode::OK, body)
}

fn quoted(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// That the project may have one more than `has`.
fn below(state: &State, project: &str, resource: &str, usual: i64, has: usize) -> Result<(), Answer> {
    let quota = state.quotas.get(project).and_then(|quotas| quotas.get(resource)?.as_i64()).unwrap_or(usual);
    if quota >= 0 && i64::try_from(has).unwrap_or(i64::MAX) >= quota {
        let message = format!("Quota exceeded for resources: ['{resource}'].");
        return Err(refused(409, "OverQuota", &message));
    }
    Ok(())
}

fn create_group(state: &mut State, project: &str, wanted: &Value) -> Result<Answer, Answer> {
    let name = wanted["name"].as_str().unwrap_or_default();
    if name.eq_ignore_ascii_case("default") {
        let message = "Default security group already exists.";
        return Err(refused(409, "SecurityGroupDefaultAlreadyExists", message));
    }
    if wanted.get("tags").is_some() {
        return Err(refused(400, "HTTPBadRequest", "Attribute 'tags' not allowed in POST"));
    }
    below(state, project, "security_group", GROUPS, owned(state, project).count())?;
    let group = state.group_of(project, name, wanted["description"].as_str().unwrap_or_default());
    state.groups.insert(group["id"].as_str().expect("an ID").to_owned(), group.clone());
    Ok((StatusCode::CREATED, json!({"security_group": group})))
}

fn delete_group(state: &mut State, project: &str, id: &str) -> Result<Answer, Answer> {
    group(state, project, id)?;
    let uses = |port: &Value| port["security_groups"].as_array().is_some_and(|ids| ids.contains(&id.into()));
    if state.ports.values().any(uses) {
        return Err(refused(409, "SecurityGroupInUse", &format!("Security Group {id} in use.")));
    }
    state.groups.remove(id);
    for group in state.groups.values_mut() {
        if let Some(rules) = group["security_group_rules"].as_array_mut() {
            rules.retain(|rule| rule["remote_group_id"] != id);
        }
    }
    Ok((StatusCode::NO_CONTENT, Value::Null))
}

fn create_port(state: &mut State, project: &str, wanted: &Value) -> Result<Answer, Answer> {
    let groups = match wanted["security_groups"].as_array() {
        Some(ids) => ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect(),
        None if wanted["port_security_enabled"] == false => Vec::new(),
        None => state.default_group(project).into_iter().collect::<Vec<_>>(),
    };
    let id = state.add_port(project, wanted, &groups);
    Ok((StatusCode::CREATED, json!({"port": state.ports[&id]})))
}

fn update_port(state: &mut State, project: &str, id: &str, asked: &Recorded) -> Result<Answer, Answer> {
    let current = port(state, project, id)?.clone();
    let wanted = &asked.body["port"];
    let groups = wanted["security_groups"].as_array().cloned().map(sorted);
    let secure =
        wanted["port_security_enabled"].as_bool().unwrap_or(current["port_security_enabled"] == true);
    if !secure && groups.as_ref().is_some_and(|groups| !groups.is_empty()) {
        let message = "Port Security must be enabled in order to have allowed address pairs on a port.";
        return Err(refused(400, "PortSecurityAndIPRequiredForSecurityGroups", message));
    }
    for id in groups.iter().flatten() {
        group(state, project, id.as_str().unwrap_or_default())?;
    }
    let mut changed = current.clone();
    if let Some(groups) = groups {
        changed["security_groups"] = groups.into();
    }
    changed["port_security_enabled"] = secure.into();
    if changed == current {
        return Ok((StatusCode::OK, json!({"port": current}))); // no condition is looked at
    }
    let condition = asked.headers.get("if-match").and_then(|value| value.to_str().ok());
    if let Some(wanted) =
        condition.and_then(|text| text.strip_prefix("revision_number=")?.parse::<i64>().ok())
        && current["revision_number"] != wanted
    {
        let message =
            format!("Constrained to {wanted}, but current revision is {}", current["revision_number"]);
        return Err(refused(412, "RevisionNumberConstraintFailed", &message));
    }
    bump(&mut changed);
    state.ports.insert(id.to_owned(), changed.clone());
    Ok((StatusCode::OK, json!({"port": changed})))
}

fn sorted(mut groups: Vec<Value>) -> Vec<Value> {
    groups.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    groups.dedup();
    groups
}

fn delete_port(state: &mut State, project: &str, id: &str) -> Result<Answer, Answer> {
    let port = port(state, project, id)?;
    let owner = port["device_owner"].as_str().unwrap_or_default();
    if project != "admin" && owner.starts_with("compute:") {
        return Err(refused(403, "PolicyNotAuthorized", "rule:delete_port is disallowed by policy"));
    }
    state.ports.remove(id);
    Ok((StatusCode::NO_CONTENT, Value::Null))
}

fn create(
    name: &str,
    all: &mut std::collections::BTreeMap<String, Value>,
    world: &kubewright::World,
    body: &Value,
) -> Answer {
    let id = world.dice.uid();
    let mut object = body[name].clone();
    object["id"] = id.as_str().into();
    all.insert(id, object.clone());
    (StatusCode::CREATED, json!({ name: object }))
}
