//! Requests to one broker of several, and to the broker that coordinates a group.

use strandline_wire::{Api, ApiKey, ErrorCode, KafkaString, Request, find_coordinator};
use tokio::time::{Instant, sleep};

use crate::client::{LOOKUP_PAUSE, loses_connection};
use crate::{Address, Client, ClientError};

/// Times that one call looks for a coordinator, which a fresh cluster takes seconds to name.
/// Reached: the call fails with the broker's answer.
const LOOKUPS_MAX: u32 = 100;

impl Client {
    /// Sends a request to one broker, in the newest version that both sides know up to `at_most`.
    pub(crate) async fn call_node<R: Request>(
        &mut self,
        node_id: i32,
        at_most: i16,
        request: impl Fn(Api) -> R,
    ) -> Result<R::Response, ClientError> {
        if !self.knows_broker(node_id) {
            self.cluster(Some(&[])).await?;
        }
        let within = self.config().request_timeout;
        let connection = self.broker(node_id).await?;
        let api = connection.version(R::KEY, at_most)?;
        let result = connection.call_at(api, &request(api), within).await;
        if result.as_ref().is_err_and(loses_connection) {
            self.lose(node_id);
        }
        result
    }

    /// Sends a request about a group to its coordinator; looks it up again when the answer says
    /// that it moved or is not ready, a bounded number of times within the call's deadline.
    pub(crate) async fn call_coordinator<R: Request, T>(
        &mut self,
        group: &str,
        at_most: i16,
        request: impl Fn(Api) -> R,
        answer: impl Fn(R::Response) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let deadline = Instant::now() + self.config().request_timeout;
        let mut lookups = 0;
        loop {
            let outcome = match self.coordinator(group).await {
                Ok(node_id) => self.call_node(node_id, at_most, &request).await.and_then(&answer),
                Err(error) => Err(error),
            };
            lookups += 1;
            match outcome {
                Err(error)
                    if waits_for_coordinator(&error)
                        && lookups < LOOKUPS_MAX
                        && Instant::now() + LOOKUP_PAUSE < deadline =>
                {
                    sleep(LOOKUP_PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// The broker that coordinates a group.
    pub async fn coordinator(&mut self, group: &str) -> Result<i32, ClientError> {
        const KEY_TYPE_GROUP: i8 = 0;
        // Version 4 asks for several groups at once, all older ones for one.
        let in_list = self.version_of(ApiKey::FindCoordinator).await? >= 4;
        let key = KafkaString::from(group.to_owned());
        let request = find_coordinator::Request {
            key: if in_list { KafkaString::default() } else { key.clone() },
            key_type: KEY_TYPE_GROUP,
            coordinator_keys: if in_list { vec![key] } else { Vec::new() },
            ..Default::default()
        };
        let response = self.call(&request).await?;
        let subject = || format!("group {group}");
        let message = response.error_message.as_ref().map(KafkaString::as_str);
        ClientError::check(response.error_code, subject, message)?;
        let (node_id, host, port) = match response.coordinators.into_iter().next() {
            None => (response.node_id, response.host, response.port),
            Some(found) => {
                let message = found.error_message.as_ref().map(KafkaString::as_str);
                ClientError::check(found.error_code, subject, message)?;
                (found.node_id, found.host, found.port)
            }
        };
        // A port that no address can have: connecting fails, with this address in the error.
        let port = u16::try_from(port).unwrap_or(0);
        self.learn_broker(node_id, Address::new(host.to_string(), port));
        Ok(node_id)
    }
}

/// Whether the answer says that the coordinator is elsewhere, or not ready yet.
pub(crate) fn waits_for_coordinator(error: &ClientError) -> bool {
    error.code().is_some_and(|code| {
        matches!(
            code,
            ErrorCode::COORDINATOR_NOT_AVAILABLE
                | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
                | ErrorCode::NOT_COORDINATOR
        )
    })
}
