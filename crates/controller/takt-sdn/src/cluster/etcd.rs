//! Requests to etcd in the JSON of its HTTP gateway (etcd 3.4, `/v3/`): keys and values are base64,
//! 64-bit numbers are strings.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::store::Changes;

/// Maximum number of records in one response.
pub const PAGE: usize = 200;
/// Maximum number of records that one transaction changes: etcd accepts 128 operations by default.
pub const OPERATIONS_MAX: usize = 100;

/// A request to etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Grants a lease.
    Grant {
        /// Duration in seconds.
        seconds: u64,
    },
    /// Renews a lease.
    KeepAlive {
        /// Id of the lease.
        lease: u64,
    },
    /// Ends a lease.
    Revoke {
        /// Id of the lease.
        lease: u64,
    },
    /// Becomes leader if there is none.
    Campaign {
        /// Id of the lease that bounds the lifetime of the key.
        lease: u64,
        /// Name of the member.
        name: String,
    },
    /// Loads records, beginning with a key, as of a revision.
    Load {
        /// The first key.
        from: String,
        /// Revision of the records.
        revision: u64,
    },
    /// Changes records on condition that the leader of this generation is in office.
    Save {
        /// Generation of the leader.
        generation: u64,
        /// Changes of the records.
        changes: Changes,
    },
}

/// Response of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// A lease was granted.
    Granted {
        /// Id of the lease.
        lease: u64,
    },
    /// Whether the lease exists.
    Alive(bool),
    /// The lease was revoked.
    Revoked,
    /// This member is leader.
    Elected {
        /// Its generation.
        generation: u64,
    },
    /// Another member is leader.
    Follows {
        /// Name of the leader.
        leader: String,
        /// Its generation.
        generation: u64,
    },
    /// Records without the prefix of their keys, and whether more records follow.
    Records(Vec<(String, Vec<u8>)>, bool),
    /// Whether the leader of the generation is in office, so that the changes were made.
    Saved(bool),
}

fn encoded(octets: &[u8]) -> String {
    STANDARD.encode(octets)
}

/// Returns the first key after all keys with this prefix.
fn behind(key: &str) -> Vec<u8> {
    let mut octets = key.as_bytes().to_vec();
    if let Some(last) = octets.last_mut() {
        *last += 1;
    }
    octets
}

/// Returns the path and the body of a request.
pub fn encode(prefix: &str, request: &Request) -> (&'static str, Value) {
    let leader = encoded(format!("{prefix}/leader").as_bytes());
    let of_record = |key: &str| encoded(format!("{prefix}/records/{key}").as_bytes());
    let compare =
        |generation: u64| json!([{ "key": leader, "target": "CREATE", "createRevision": generation.to_string() }]);
    match request {
        Request::Grant { seconds } => ("/v3/lease/grant", json!({ "TTL": seconds.to_string() })),
        Request::KeepAlive { lease } => ("/v3/lease/keepalive", json!({ "ID": lease.to_string() })),
        Request::Revoke { lease } => ("/v3/lease/revoke", json!({ "ID": lease.to_string() })),
        Request::Campaign { lease, name } => {
            let put = json!({ "key": leader, "value": encoded(name.as_bytes()), "lease": lease.to_string() });
            let (success, failure) = (json!([{ "requestPut": put }]), json!([{ "requestRange": { "key": leader } }]));
            ("/v3/kv/txn", json!({ "compare": compare(0), "success": success, "failure": failure }))
        }
        Request::Load { from, revision } => {
            let end = encoded(&behind(&format!("{prefix}/records/")));
            let body = json!({
                "key": of_record(from), "range_end": end, "limit": PAGE.to_string(), "revision": revision.to_string(),
            });
            ("/v3/kv/range", body)
        }
        Request::Save { generation, changes } => {
            let removed = changes.removed.iter().map(|key| json!({ "requestDeleteRange": { "key": of_record(key) } }));
            let put = changes
                .put
                .iter()
                .map(|(key, value)| json!({ "requestPut": { "key": of_record(key), "value": encoded(value) } }));
            let success: Vec<Value> = removed.chain(put).collect();
            ("/v3/kv/txn", json!({ "compare": compare(*generation), "success": success }))
        }
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok() // tidy-allow(dropped-cause): the caller names the unreadable answer.
}

fn decoded(value: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(value.as_str()?).ok() // tidy-allow(dropped-cause): the caller names the unreadable answer.
}

/// Decodes the response to a request.
///
/// # Errors
/// The error that etcd reports, or that the response is unreadable.
pub fn decode(prefix: &str, request: &Request, body: &[u8]) -> Result<Response, String> {
    let value: Value = serde_json::from_slice(body).map_err(|error| format!("etcd's response is not JSON: {error}"))?;
    if let Some(error) = value.get("error") {
        let text = error.as_str().or_else(|| error["message"].as_str()).unwrap_or("an error without a text");
        return Err(format!("etcd refuses a request: {text}"));
    }
    understood(prefix, request, &value).ok_or_else(|| "unexpected response of etcd".to_owned())
}

fn understood(prefix: &str, request: &Request, value: &Value) -> Option<Response> {
    let has_succeeded = value["succeeded"].as_bool().unwrap_or(false);
    Some(match request {
        Request::Grant { .. } => Response::Granted { lease: number(&value["ID"])? },
        // An expired lease has no TTL.
        Request::KeepAlive { .. } => Response::Alive(number(&value["result"]["TTL"]).is_some_and(|ttl| ttl > 0)),
        Request::Revoke { .. } => Response::Revoked,
        Request::Campaign { .. } if has_succeeded => {
            Response::Elected { generation: number(&value["header"]["revision"])? }
        }
        Request::Campaign { lease, .. } => {
            let leader = &value["responses"][0]["response_range"]["kvs"][0];
            if number(&leader["lease"]) == Some(*lease) {
                // An earlier request was executed, but its response was lost.
                return Some(Response::Elected { generation: number(&leader["create_revision"])? });
            }
            let name = String::from_utf8_lossy(&decoded(&leader["value"])?).into_owned();
            Response::Follows { leader: name, generation: number(&leader["create_revision"])? }
        }
        Request::Load { .. } => {
            let of_prefix = format!("{prefix}/records/");
            let read = |entry: &Value| {
                let key = String::from_utf8(decoded(&entry["key"])?).ok()?; // tidy-allow(dropped-cause): the caller names the unreadable answer.
                // The JSON omits an empty value.
                let value = if entry["value"].is_null() { Vec::new() } else { decoded(&entry["value"])? };
                Some((key.strip_prefix(&of_prefix)?.to_owned(), value))
            };
            let entries = value["kvs"].as_array().map_or(&[][..], Vec::as_slice);
            let records = entries.iter().map(read).collect::<Option<Vec<_>>>()?;
            Response::Records(records, value["more"].as_bool().unwrap_or(false))
        }
        Request::Save { .. } => Response::Saved(has_succeeded),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_saved_while_the_generation_holds() {
        let changes = Changes { put: vec![("host/1".into(), b"x".to_vec())], removed: vec!["host/2".into()] };
        let request = Request::Save { generation: 7, changes };
        let (path, body) = encode("p", &request);
        assert_eq!(path, "/v3/kv/txn");
        assert_eq!(body["compare"][0], json!({ "key": "cC9sZWFkZXI=", "target": "CREATE", "createRevision": "7" }));
        assert_eq!(body["success"][0]["requestDeleteRange"]["key"], json!(encoded(b"p/records/host/2")));
        assert_eq!(body["success"][1]["requestPut"]["value"], json!("eA=="));
        assert_eq!(decode("p", &request, br#"{"succeeded":true}"#), Ok(Response::Saved(true)));
        assert_eq!(decode("p", &request, b"{}"), Ok(Response::Saved(false)));
    }

    #[test]
    fn errors_and_unreadable_answers_are_distinguished() {
        let request = Request::Grant { seconds: 3 };
        let error = decode("p", &request, br#"{"error":"no leader","code":14}"#).expect_err("the reply is an error");
        assert!(error.contains("no leader"), "{error}");
        decode("p", &request, b"<html>").expect_err("the reply is not JSON");
        decode("p", &request, b"{}").expect_err("the reply has no lease");
        decode("p", &Request::Load { from: String::new(), revision: 1 }, br#"{"kvs":[{"key":"?"}]}"#)
            .expect_err("the key is not base64");
    }
}
