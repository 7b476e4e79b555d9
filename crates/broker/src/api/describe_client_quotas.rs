//! DescribeClientQuotas: v0–v1 (KIP-546).

use std::collections::BTreeMap;

use strandline_model::{QuotaEntity, QuotaEntityType};
use strandline_wire::ErrorCode;
use strandline_wire::describe_client_quotas::{
    ComponentData, EntityData, EntryData, Request, Response, ValueData,
};

use super::text;
use crate::Broker;

const EXACT: i8 = 0;
const DEFAULT: i8 = 1;
const ANY: i8 = 2;

/// What an entity's name must be.
enum Wanted {
    /// This one, or everybody's.
    Name(Option<String>),
    /// Any.
    Any,
}

/// Describes the quotas of the entities that match every component.
pub(crate) fn handle(broker: &Broker, request: &Request) -> Response {
    let wanted = match filter(&request.components) {
        Ok(wanted) => wanted,
        Err((code, message)) => {
            return Response {
                error_code: code.get(),
                error_message: Some(text(message)),
                entries: None,
                ..Response::default()
            };
        }
    };
    let matches = |entity: &QuotaEntity| {
        let has = |(kind, wanted): (&QuotaEntityType, &Wanted)| match (entity.name(*kind), wanted) {
            (None, _) => false,
            (Some(_), Wanted::Any) => true,
            (Some(name), Wanted::Name(wanted)) => name == wanted.as_deref(),
        };
        (!request.strict || entity.iter().len() == wanted.len()) && wanted.iter().all(has)
    };
    let quotas = broker.configs().client_quotas().into_iter();
    let entries = quotas.filter(|(entity, _)| matches(entity)).map(|(entity, quotas)| EntryData {
        entity: entity
            .iter()
            .map(|(kind, name)| EntityData {
                entity_type: text(kind.name()),
                entity_name: name.map(text),
                ..EntityData::default()
            })
            .collect(),
        values: quotas
            .into_iter()
            .map(|(key, value)| ValueData { key: text(key), value, ..ValueData::default() })
            .collect(),
        ..EntryData::default()
    });
    // As Kafka: empty, not null.
    let error_message = Some(text(""));
    Response { entries: Some(entries.collect()), error_message, ..Response::default() }
}

fn filter(
    components: &[ComponentData],
) -> Result<BTreeMap<QuotaEntityType, Wanted>, (ErrorCode, String)> {
    let invalid = |message: String| Err((ErrorCode::INVALID_REQUEST, message));
    let mut filter = BTreeMap::new();
    for component in components {
        let name = component.entity_type.as_str();
        if name.is_empty() {
            return invalid("Invalid empty entity type.".to_owned());
        }
        let kind = QuotaEntityType::of_name(name).ok_or_else(|| {
            (ErrorCode::UNSUPPORTED_VERSION, format!("Unsupported entity type {name}"))
        })?;
        let wanted = match (component.match_type, &component.r#match) {
            (EXACT, Some(name)) => Wanted::Name(Some(name.as_str().to_owned())),
            (EXACT, None) => {
                return invalid(
                    "Request specified MATCH_TYPE_EXACT, but set match string to null.".to_owned(),
                );
            }
            (DEFAULT, None) => Wanted::Name(None),
            (ANY, None) => Wanted::Any,
            (DEFAULT | ANY, Some(_)) => {
                let kind = if component.match_type == ANY { "SPECIFIED" } else { "DEFAULT" };
                return invalid(format!(
                    "Request specified MATCH_TYPE_{kind}, but also specified a match string."
                ));
            }
            (other, _) => return invalid(format!("Unknown match type {other}")),
        };
        if filter.insert(kind, wanted).is_some() {
            return invalid(format!(
                "Entity type {name} cannot appear more than once in the filter."
            ));
        }
    }
    if filter.contains_key(&QuotaEntityType::Ip) && filter.len() > 1 {
        return invalid(
            "Invalid entity filter component combination. IP filter component should not be used \
             with user or clientId filter component."
                .to_owned(),
        );
    }
    Ok(filter)
}
