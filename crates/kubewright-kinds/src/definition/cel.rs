//! The rules of a definition must compile, and must not cost too much
//! (`ValidateCustomResourceDefinitionOpenAPISchema` and `cel_validation.go`).

use kubewright_cel::limits::{ESTIMATED_CRD_COST_LIMIT, ESTIMATED_RULE_COST_LIMIT, MAX_REQUEST_SIZE_BYTES};
use kubewright_meta::FieldError;
use kubewright_schema::{Type, rules, structural};
use serde_json::Value;

use super::path::Path;
use super::{flag, go, list, part, text};

/// How many of the costliest rules are told.
const TOLD: usize = 4;

/// Where in a valid schema a part stands, as far as rules are concerned.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// How often a value of it can occur; `None` where nothing bounds that.
    cardinality: Option<u64>,
    /// It is the schema of a resource.
    resource: bool,
    /// The list whose elements cannot be told from one another, if it is in one.
    uncorrelated: Option<&'a Path<'a>>,
    /// Whether CEL can know its type.
    typing: Typing,
    /// Something around it has rules, so that its type is one of theirs.
    in_rules: bool,
}

/// Whether CEL can know the type of what stands below a part (`CELSchemaContext.TypeInfo`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Typing {
    Known,
    /// It is below something of a type that is none: its own is told by that.
    Untyped,
    /// It is in something that is an integer or a text, and has no elements to CEL.
    Undeclared,
}

impl Typing {
    /// Why rules cannot be compiled.
    fn mistake(self) -> &'static str {
        match self {
            Self::Known | Self::Untyped => {
                "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations"
            }
            Self::Undeclared => rules::UNDECLARED,
        }
    }
}

impl<'a> Context<'a> {
    /// The root of a schema.
    pub(super) fn root() -> Self {
        Self {
            cardinality: Some(1),
            resource: true,
            uncorrelated: None,
            typing: Typing::Known,
            in_rules: false,
        }
    }

    /// A field of an object.
    pub(super) fn field(self, schema: &Value, child: &Value) -> Self {
        let cardinality = self.cardinality.zip(most_elements(schema)).map(|(one, most)| times(one, most));
        let resource = flag(child, "x-kubernetes-embedded-resource");
        let in_rules = self.in_rules || has_rules(schema);
        let typing = if !in_rules || has_type(schema) { self.typing } else { Typing::Untyped };
        Self { cardinality, resource, typing, in_rules, ..self }
    }

    /// The values of a map.
    pub(super) fn values(self, schema: &Value, child: &Value) -> Self {
        let below = self.field(schema, child);
        let undeclared = below.in_rules && flag(schema, "x-kubernetes-int-or-string");
        Self { typing: if undeclared { Typing::Undeclared } else { below.typing }, ..below }
    }

    /// The elements of a list at `path`.
    pub(super) fn elements(self, schema: &Value, child: &Value, path: &'a Path<'a>) -> Self {
        let uncorrelated = match self.uncorrelated {
            None if text(schema, "x-kubernetes-list-type") != "map" => Some(path),
            outer => outer,
        };
        Self { uncorrelated, ..self.values(schema, child) }
    }
}

fn has_rules(schema: &Value) -> bool {
    list(schema, "x-kubernetes-validations").next().is_some()
}

/// Whether a schema that has others below says of what type its values are, or that they are of any.
fn has_type(schema: &Value) -> bool {
    let kind = text(schema, "type");
    Type::parse(kind).is_some()
        || ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"]
            .into_iter()
            .any(|any| kind.is_empty() && flag(schema, any))
}

/// How many values stand below one of a schema, where that is bounded.
fn most_elements(schema: &Value) -> Option<u64> {
    let most = |key: &str| schema.get(key).and_then(Value::as_i64).map(|most| most.try_into().unwrap_or(0));
    match text(schema, "type") {
        "object" if part(schema, "additionalProperties").is_some() => most("maxProperties"),
        "array" => most("maxItems"),
        _ => Some(1),
    }
}

fn times(cost: u64, count: u64) -> u64 {
    cost.saturating_mul(count)
}

/// What all rules of a schema cost together.
#[derive(Debug, Default)]
pub(super) struct Total {
    cost: u64,
    /// The costliest, the most expensive first.
    costliest: Vec<(String, u64)>,
}

impl Total {
    fn add(&mut self, path: &Path<'_>, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        if cost < ESTIMATED_CRD_COST_LIMIT / 100 {
            return;
        }
        self.costliest.push((path.to_string(), cost));
        self.costliest.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.costliest.truncate(TOLD);
    }

    /// What is wrong with the sum.
    pub(super) fn check(self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        if self.cost <= ESTIMATED_CRD_COST_LIMIT {
            return;
        }
        for (rule, _) in self.costliest {
            let detail =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            errors.push(FieldError::forbidden(rule, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(*path, too_costly(what, self.cost, ESTIMATED_CRD_COST_LIMIT)));
    }
}

/// What is wrong with the rules of one part of a schema. `unchanged`: the schema is as it was, so that what was not too
/// costly before is not now.
pub(super) fn validate(
    schema: &Value,
    context: Context<'_>,
    unchanged: bool,
    path: &Path<'_>,
    total: &mut Total,
    errors: &mut Vec<FieldError>,
) {
    let node = structural::node(schema);
    let all = path.child("x-kubernetes-validations");
    let declaration = rules::declaration(&node, context.resource).filter(|_| context.typing == Typing::Known);
    let Some(declaration) = declaration else {
        errors.push(FieldError {
            field: all.to_string(),
            problem: kubewright_meta::field::Problem::Internal,
            detail: context.typing.mistake().into(),
        });
        return;
    };
    let most = (MAX_REQUEST_SIZE_BYTES) / (declaration.min_serialized_size() + 1);
    let cardinality = context.cardinality.unwrap_or(most);
    let written = list(schema, "x-kubernetes-validations");
    for (index, (rule, compiled)) in written.zip(rules::compile(&node, &declaration)).enumerate() {
        let path = all.index(index);
        let (at, message_at) = (path.child("rule"), path.child("messageExpression"));
        let program = compiled.program.as_ref().ok().and_then(Option::as_ref);
        let cost = times(program.map_or(0, |program| program.estimate().max), cardinality);
        if !unchanged && cost > ESTIMATED_RULE_COST_LIMIT {
            let detail = too_costly("estimated rule cost", cost, ESTIMATED_RULE_COST_LIMIT);
            errors.push(FieldError::forbidden(at, detail));
        }
        total.add(&at, cost);
        let quoting =
            |path: Path<'_>, why: &str| FieldError::invalid(path, Value::Null, why).printed(go::rule(rule));
        if let Err(why) = &compiled.program {
            errors.push(quoting(at, why));
        }
        match &compiled.message_program {
            Err(why) => errors.push(quoting(message_at, why)),
            Ok(Some(program)) => {
                let cost = program.estimate().max;
                if !unchanged && cost > ESTIMATED_RULE_COST_LIMIT {
                    let detail =
                        too_costly("estimated messageExpression cost", cost, ESTIMATED_RULE_COST_LIMIT);
                    errors.push(FieldError::forbidden(message_at, detail));
                }
                total.add(&message_at, cost);
            }
            Ok(None) => {}
        }
        if compiled.uses_old_self() {
            if let Some(list) = context.uncorrelated {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                errors.push(FieldError::invalid(at, text(rule, "rule"), detail));
            }
        } else if let Some(optional) = part(rule, "optionalOldSelf") {
            let detail = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(path.child("optionalOldSelf"), optional.clone(), detail));
        }
    }
}

/// By how much a cost is over its limit (`getCostErrorMessage`).
fn too_costly(what: &str, cost: u64, limit: u64) -> String {
    #[allow(clippy::cast_precision_loss)]
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
