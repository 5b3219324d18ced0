//! What a step proposes to make of the current object, and how that is judged.

use kubewright_meta::rules::at;
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_schema::{Candidate, Encoding, Extent, fields};
use serde_json::Value;
use tokio::sync::MutexGuard;

use super::ownership::OwnedWrite;
use super::part::{Part, prepare, raise_generation, stamp};
use super::preconditions::{check_uid, check_version};
use super::swap::Step;
use super::{custom, definitions, device_claims};
use crate::admission::{self, Review};
use crate::engine::Engine;
use crate::engine::allocate;
use crate::request::place::{check_name, place_in_namespace};
use crate::request::{WriteOptions, body, type_of_body};

/// A change of an object that was read.
pub(super) struct Proposal<'a> {
    pub(super) engine: &'a Engine,
    /// What admission is asked about.
    pub(super) review: Review<'a>,
    /// What of the object is written.
    pub(super) part: Part,
    pub(super) step: &'a Step<'a>,
    pub(super) options: &'a WriteOptions,
    /// The object, in the version that is written.
    pub(super) current: &'a Value,
}

/// What a step makes of the object, before it is judged.
pub(super) struct Next {
    object: Value,
    /// See [`Judged::is_live`].
    is_live: bool,
}

/// The next object, as JSON has it.
pub(super) struct Judged<'e> {
    pub(super) object: Value,
    /// Whether it is stored with bytes without contents, which are not read.
    pub(super) leaves_unread: bool,
    /// Whether it replaces the version that it names: nobody may have been faster.
    pub(super) names_version: bool,
    /// Whether it is the live object: a configuration was applied that changes nothing of it. That is no write, whatever a round through its
    /// version adds (`FieldManager.Apply`).
    pub(super) is_live: bool,
    /// Holds what was allocated for it until it is stored.
    _allocation: Option<MutexGuard<'e, ()>>,
}

impl<'a> Proposal<'a> {
    /// What the step makes of the object: typed, defaulted, owned, and as admission has changed it.
    ///
    /// # Errors
    /// What the request, or admission, has against it.
    pub(super) async fn next(&self, warnings: &mut Vec<String>) -> Result<Next, ApiError> {
        let Self { review, step, options, current, .. } = self;
        let call = review.call;
        let mut next = self.made(warnings).await?;
        let is_live = self.is_live(&next);
        if matches!(step, Step::Change(_) | Step::Apply(_)) {
            place_in_namespace(call, &mut next)?;
            check_name(call, object::name(&next))?;
        }
        if matches!(step, Step::Replace(_)) {
            check_uid(call, options, current, &next)?;
        }
        match step {
            Step::Apply(_) => body::default_changed(call.kind, &mut next),
            // Nobody decodes the object that a scale is put into, and so it gets no defaults.
            Step::View(_) if call.kind.custom.is_some() => {}
            _ => body::default(call.kind, &mut next),
        }
        if let Some(complete) = call.kind.rules.complete {
            complete(&mut next);
        }
        let is_owned = match step {
            Step::Replace(_) | Step::Change(_) => true,
            Step::Edit(_) => !options.manager.is_empty(),
            Step::Apply(_) | Step::View(_) => false,
        };
        if is_owned {
            self.owned().own_converting(&mut next).await;
        }
        call.kind.schema().settle(&mut next);
        if self.is_asked_for() && step.view().is_none() {
            admission::mutate(review, &mut next, warnings).await?;
        }
        Ok(Next { object: next, is_live })
    }

    /// Whether what was applied is the live object, but for its owners. It is only asked where a round through a version may add to it.
    fn is_live(&self, applied: &Value) -> bool {
        let is_asked = matches!(self.step, Step::Apply(_)) && self.review.call.kind.stored_in().is_some();
        is_asked && {
            let mut applied = applied.clone();
            object::copy_meta(&mut applied, self.current, "managedFields");
            applied == *self.current
        }
    }

    fn owned(&self) -> OwnedWrite<'_> {
        OwnedWrite {
            engine: self.engine,
            call: self.review.call,
            subresource: self.part.subresource(),
            options: self.options,
            live: Some(self.current),
        }
    }

    /// What the step makes of the object: typed, not yet defaulted, and owned where it is applied. Of a view, admission has seen what is
    /// shown.
    async fn made(&self, warnings: &mut Vec<String>) -> Result<Value, ApiError> {
        let Self { review, step, options, current, .. } = self;
        let call = review.call;
        Ok(match step {
            Step::Replace(object) => object.clone(),
            Step::Edit(edit) => {
                let mut next = (*current).clone();
                edit(&mut next)?;
                next
            }
            Step::View(view) => {
                let mut shown = view.next(current, warnings)?;
                admission::mutate(review, &mut shown, warnings).await?;
                let mut next = (*current).clone();
                view.put(&shown, &mut next)?;
                next
            }
            Step::Change(change) => body::patched(call.kind, change, current, options.validation, warnings)?,
            Step::Apply(config) => self.owned().applied(config, warnings).await?,
        })
    }

    /// Whether somebody asks for it: what the server changes by itself was admitted as what asked for that.
    fn is_asked_for(&self) -> bool {
        self.part != Part::Trusted
    }

    /// Prepares a proposed object, and checks it by the rules of its kind and by admission, after who may change it has seen it
    /// (`Store.Update`).
    ///
    /// # Errors
    /// 409 when it names another version; 422 and 403.
    pub(super) async fn judge(
        &self,
        Next { object: mut next, is_live }: Next,
        warnings: &mut Vec<String>,
    ) -> Result<Judged<'a>, ApiError> {
        let Self { engine, review, part, step, options, current } = *self;
        let call = review.call;
        let kind = call.kind;
        let names_version = check_version(call, current, &next)? && matches!(step, Step::Replace(_));
        let named = type_of_body::named_in_refusals(kind, &next);
        prepare(kind, part, &mut next, current);
        if matches!(part, Part::Main | Part::Status) {
            stamp(engine, kind, &mut next, Some(current));
        }
        let allocation = match part {
            Part::Status => None,
            _ => allocate::allocate(engine, kind, &mut next, Some(current), options.dry_run).await?,
        };
        let errors = self.errors(&next, warnings);
        if !errors.is_empty() {
            // Admission may have changed the name.
            return Err(ApiError::invalid_of(&named.0, &named.1, object::name(&next), &errors));
        }
        if part == Part::Main {
            warnings.extend(kind.rules.warnings(&next, Some(current)));
        }
        warnings.extend(definitions::warnings(kind, &next, Some(current)));
        raise_generation(kind, part, &mut next, current);
        let has_bytes = kind.schema().leave_out(&mut next, Encoding::Json);
        fields::keep_times(&mut next, current, if kind.custom.is_some() { Value::eq } else { at::same });
        if self.is_asked_for() {
            let shown = step.view().map(|view| view.of(&next));
            admission::validate(&review, shown.as_ref().unwrap_or(&next), warnings).await?;
        }
        let leaves_unread = has_bytes && kind.encoding() == Encoding::Protobuf;
        Ok(Judged { object: next, leaves_unread, names_version, is_live, _allocation: allocation })
    }

    /// What is wrong with a prepared object.
    fn errors(&self, next: &Value, warnings: &mut Vec<String>) -> Vec<FieldError> {
        let Self { engine, review, part, step, current, .. } = *self;
        let call = review.call;
        let kind = call.kind;
        let mut errors = device_claims::errors(engine, call, (part, step.verb()), next, Some(current));
        errors.extend(match part {
            Part::Main if type_of_body::says_other(kind, next) => {
                kind.rules.errors_of_metadata_on_update(next, current, kind.namespaced())
            }
            Part::Main => kind.rules.errors_on_update(next, current, kind.namespaced()),
            Part::Status => kind.rules.errors_on_status(next, current, kind.namespaced()),
            Part::Member(member) => {
                let of_member = || member.errors(next, current);
                let both = (next, current);
                kind.rules.errors_on_member(both, kind.namespaced(), member.revalidates(), of_member)
            }
            Part::Trusted => return Vec::new(),
        });
        let extent = if part == Part::Status { Extent::Status } else { Extent::Whole };
        let candidate =
            Candidate { object: next, old: Some(current), part: extent, version: kind.kubernetes() };
        warnings.extend(custom::check(kind, candidate, &mut errors));
        if errors.is_empty() && part == Part::Status {
            errors = admission::pod_certificates::status_errors(&review, next, current);
        }
        errors.extend(kind.rules.within(|| definitions::errors(kind, candidate)));
        errors
    }
}
