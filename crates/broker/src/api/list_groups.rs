//! ListGroups: v0–v5. v4 filter by state (KIP-518); v5 filter by type (KIP-848).

use strandline_wire::list_groups::{ListedGroup, Request, Response};

use super::text;
use crate::{Broker, error_code};

/// The kind of every group that there is.
const CLASSIC: &str = "classic";

/// Lists the groups that pass both filters; an empty filter lets everything pass.
pub(crate) async fn handle(broker: &Broker, request: &Request) -> Response {
    let types = &request.types_filter;
    let is_type = |wanted: &str| wanted.eq_ignore_ascii_case(CLASSIC);
    if !types.is_empty() && !types.iter().any(|wanted| is_type(wanted.as_str())) {
        return Response::default();
    }
    let groups = match broker.groups().list().await {
        Ok(groups) => groups,
        Err(unavailable) => {
            let error_code = error_code::unavailable(unavailable).get();
            return Response { error_code, ..Response::default() };
        }
    };
    let states = &request.states_filter;
    let is_wanted = |state: &str| {
        states.is_empty()
            || states.iter().any(|wanted| wanted.as_str().trim().eq_ignore_ascii_case(state))
    };
    let listed = groups.into_iter().filter(|group| is_wanted(group.state.name()));
    let groups = listed.map(|group| ListedGroup {
        group_id: text(&*group.group),
        protocol_type: text(&*group.protocol_type),
        group_state: text(group.state.name()),
        group_type: text(CLASSIC),
        ..ListedGroup::default()
    });
    Response { groups: groups.collect(), ..Response::default() }
}
