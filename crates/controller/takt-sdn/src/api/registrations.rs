//! Registrations over HTTP: POST registers or renews, GET shows, DELETE removes.
//!
//! Only the control socket and clients with a write token may change registrations. POST returns
//! 201 when the registration is decided, 202 while the switches have not confirmed all entries, and
//! 200 for a renewal. A refused registration has a regular response, too, whose body names the
//! reason.

use serde_json::json;

use super::ApiCounters;
use super::http::{Method, Request, Response};
use super::service::{Service, content, error};
use crate::registration::{Owner, Registration, RegistrationError, RegistrationId};
use crate::view::Pair;

/// Path of all registrations.
const PATH: &str = "/v1/registrations";

/// Permission of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Permission {
    Read,
    /// Reading, and changing registrations of this owner.
    Write(Owner),
}

/// Meaning of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resource {
    All,
    /// One registration; `None` if the path contains no number.
    One(Option<RegistrationId>),
}

/// Returns the registrations that a path denotes.
pub(super) fn resource(path: &str) -> Option<Resource> {
    match path.strip_prefix(PATH)? {
        "" => Some(Resource::All),
        rest => {
            let text = rest.strip_prefix('/')?;
            let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
            let number = text.parse().ok().filter(|_| is_number); // tidy-allow(dropped-cause): there is no registration with that number.
            Some(Resource::One(number.map(RegistrationId)))
        }
    }
}

fn is_of(pair: &Pair, id: RegistrationId) -> bool {
    pair.registration.as_ref().is_some_and(|registration| registration.id == id.to_string())
}

impl Service {
    pub(super) fn registrations(&self, permission: &Permission, request: &Request, resource: Resource) -> Response {
        match (request.method, resource) {
            (Method::Get | Method::Head, Resource::All) => self.of_view(request, |view| {
                let all: Vec<&Pair> = view.pairs.iter().filter(|pair| pair.registration.is_some()).collect();
                content(200, &json!({ "registrations": all }))
            }),
            (Method::Get | Method::Head, Resource::One(id)) => self.of_view(request, |view| {
                let found = id.and_then(|id| view.pairs.iter().find(|pair| is_of(pair, id)));
                found.map_or_else(|| error(404, &RegistrationError::Unknown.to_string()), |pair| content(200, pair))
            }),
            (Method::Post, Resource::All) => self.write(permission, |owner| self.register(owner, &request.body)),
            (Method::Delete, Resource::One(id)) => self.write(permission, |owner| self.unregister(owner, id)),
            (Method::Post, Resource::One(_)) => error(405, "renew a registration with POST to /v1/registrations"),
            (Method::Delete, Resource::All) => error(405, "delete registrations individually, by id"),
        }
    }

    fn write(&self, permission: &Permission, response: impl FnOnce(&Owner) -> Response) -> Response {
        match permission {
            Permission::Write(owner) => response(owner),
            Permission::Read => {
                ApiCounters::count(&self.counters.forbidden);
                error(
                    403,
                    "this token is read-only; registrations need a token of --api-write-token, or the control socket",
                )
            }
        }
    }

    fn register(&self, owner: &Owner, body: &[u8]) -> Response {
        let registration: Registration = match serde_json::from_slice(body) {
            Ok(registration) => registration,
            Err(why) => {
                ApiCounters::count(&self.counters.rejected);
                return error(400, &format!("the body is not a registration: {why}"));
            }
        };
        match self.source.register(owner, registration) {
            Ok(Ok(registered)) => {
                let state = registered.pair.registration.as_ref().map(|registration| registration.state);
                let status = match state {
                    Some(state) if !state.is_decided() => 202,
                    _ if registered.is_new => 201,
                    _ => 200,
                };
                content(status, &registered.pair)
            }
            Ok(Err(why)) => self.rejected(&why),
            Err(why) => error(503, &why.to_string()),
        }
    }

    fn unregister(&self, owner: &Owner, id: Option<RegistrationId>) -> Response {
        let Some(id) = id else { return self.rejected(&RegistrationError::Unknown) };
        match self.source.unregister(owner, id) {
            Ok(Ok(pair)) => content(200, &pair),
            Ok(Err(why)) => self.rejected(&why),
            Err(why) => error(503, &why.to_string()),
        }
    }

    fn rejected(&self, why: &RegistrationError) -> Response {
        ApiCounters::count(&self.counters.rejected);
        let status = match why {
            RegistrationError::Invalid(_) => 400,
            RegistrationError::NotOwner(_) | RegistrationError::Denied(_) => 403,
            RegistrationError::Unknown | RegistrationError::NoNetwork => 404,
            RegistrationError::Conflict(_) => 409,
            RegistrationError::Limit(_) => 429,
            RegistrationError::Standby => 503,
        };
        error(status, &why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_all_registrations_or_one_by_its_number() {
        assert_eq!(resource("/v1/registrations"), Some(Resource::All));
        assert_eq!(resource("/v1/registrations/17"), Some(Resource::One(Some(RegistrationId(17)))));
        for path in [
            "/v1/registrations/",
            "/v1/registrations/+1",
            "/v1/registrations/1/2",
            "/v1/registrations/99999999999999999999",
        ] {
            assert_eq!(resource(path), Some(Resource::One(None)), "{path}");
        }
        for path in ["/v1/registration", "/v1/registrations2", "/v1/flows"] {
            assert_eq!(resource(path), None, "{path}");
        }
    }
}
