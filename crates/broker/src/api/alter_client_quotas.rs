//! AlterClientQuotas: v0–v1 (KIP-546). Quotas are kept and told; they are not enforced yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use strandline_model::QuotaEntity;
use strandline_wire::ErrorCode;
use strandline_wire::alter_client_quotas::{
    EntryData, Request, Response, ResponseEntity, ResponseEntry,
};

use super::text;
use crate::configs::AlterError;
use crate::{Broker, error_code};

/// Changes the quotas of each entity in a commit of its own.
pub(crate) async fn handle(broker: &Arc<Broker>, request: Request) -> Response {
    let mut entries: Vec<ResponseEntry> = Vec::with_capacity(request.entries.len());
    let mut seen = BTreeMap::new();
    for entry in request.entries {
        let names: BTreeMap<String, Option<String>> = entry
            .entity
            .iter()
            .map(|entity| {
                let name = entity.entity_name.as_ref().map(|name| name.as_str().to_owned());
                (entity.entity_type.as_str().to_owned(), name)
            })
            .collect();
        let altered = if seen.contains_key(&names) {
            Err((ErrorCode::INVALID_REQUEST, "Ignoring duplicate entity".to_owned()))
        } else {
            alter(broker, &names, &entry, request.validate_only).await
        };
        let (code, message) = match altered {
            Ok(()) => (ErrorCode::NONE, None),
            Err((code, message)) => (code, Some(text(message))),
        };
        let answer = ResponseEntry {
            error_code: code.get(),
            error_message: message,
            entity: names
                .iter()
                .map(|(kind, name)| ResponseEntity {
                    entity_type: text(kind.as_str()),
                    entity_name: name.as_deref().map(text),
                    ..ResponseEntity::default()
                })
                .collect(),
            ..ResponseEntry::default()
        };
        // Answered once, with the last word on it, as in Kafka.
        if let Some(earlier) = seen.get(&names).and_then(|place: &usize| entries.get_mut(*place)) {
            *earlier = answer;
        } else {
            seen.insert(names, entries.len());
            entries.push(answer);
        }
    }
    Response { entries, ..Response::default() }
}

/// An entity in Kafka's words.
fn named(names: &BTreeMap<String, Option<String>>) -> String {
    let name = |(kind, name): (&String, &Option<String>)| {
        format!("{kind}={}", name.as_deref().unwrap_or("null"))
    };
    let names: Vec<String> = names.iter().map(name).collect();
    format!("ClientQuotaEntity(entries={{{}}})", names.join(", "))
}

async fn alter(
    broker: &Arc<Broker>,
    names: &BTreeMap<String, Option<String>>,
    entry: &EntryData,
    validate_only: bool,
) -> Result<(), (ErrorCode, String)> {
    let refused = |error: AlterError| (error_code::alter_configs(&error), error.to_string());
    let mut ops = BTreeMap::new();
    for op in &entry.ops {
        let key = op.key.as_str().to_owned();
        if ops.insert(key, (!op.remove).then_some(op.value)).is_some() {
            let message = format!(
                "Duplicate quota key {} not updating quota for this entity {}",
                op.key,
                named(names)
            );
            return Err((ErrorCode::INVALID_REQUEST, message));
        }
    }
    let entity = QuotaEntity::new(names.clone()).map_err(|error| refused(error.into()))?;
    broker.alter_client_quotas(entity, ops, validate_only).await.map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_is_named_as_kafka_names_it() {
        let names = |names: &[(&str, Option<&str>)]| {
            let names = names.iter();
            let names = names.map(|(kind, name)| ((*kind).to_owned(), name.map(str::to_owned)));
            named(&names.collect())
        };
        assert_eq!(names(&[("client-id", Some("c"))]), "ClientQuotaEntity(entries={client-id=c})");
        assert_eq!(
            names(&[("user", None), ("client-id", Some("c"))]),
            "ClientQuotaEntity(entries={client-id=c, user=null})"
        );
    }
}
