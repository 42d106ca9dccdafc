//! The subset of HTTP/1.1 that the API needs (RFC 9112): one request and one response with its
//! length per connection.
//!
//! The head of a request has at most [`HEAD_MAX`] octets, its body at most [`BODY_MAX`], and both
//! must arrive within [`REQUEST_TIME`]. Bodies have a Content-Length; a transfer coding is refused.
//! [`httparse`] parses the head.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Maximum length in octets of the request line and the header fields.
pub const HEAD_MAX: usize = 8 << 10;
/// Maximum number of header fields.
pub const FIELDS_MAX: usize = 64;
/// Maximum length of a body in octets.
pub const BODY_MAX: usize = 16 << 10;
/// Time within which a request must arrive; otherwise it is refused.
pub const REQUEST_TIME: Duration = Duration::from_secs(5);
/// Time within which the peer must receive a response; otherwise it is cut off.
pub const RESPONSE_TIME: Duration = Duration::from_secs(10);

/// A connection: a stream with timeouts for reads and writes.
pub trait Connection: Read + Write {
    /// Sets the timeout of subsequent reads.
    ///
    /// # Errors
    /// The kernel refuses the timeout.
    fn limit_read(&self, time: Duration) -> io::Result<()>;

    /// Sets the timeout of subsequent writes.
    ///
    /// # Errors
    /// The kernel refuses the timeout.
    fn limit_write(&self, time: Duration) -> io::Result<()>;
}

macro_rules! connection {
    ($type:ty) => {
        impl Connection for $type {
            fn limit_read(&self, time: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(time))
            }

            fn limit_write(&self, time: Duration) -> io::Result<()> {
                self.set_write_timeout(Some(time))
            }
        }
    };
}

connection!(TcpStream);
connection!(UnixStream);

/// Method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET: returns content.
    Get,
    /// HEAD: returns the header fields of that content.
    Head,
    /// POST: decides about the body.
    Post,
    /// DELETE: removes the resource at the path.
    Delete,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Method of the request.
    pub method: Method,
    /// Path without the query.
    pub path: String,
    /// Host header field.
    pub host: Option<String>,
    /// Authorization header field.
    pub authorization: Option<Vec<u8>>,
    /// Body of the request.
    pub body: Vec<u8>,
}

/// Reasons why no request could be read.
#[derive(Debug)]
pub enum RequestError {
    /// No data arrived, or the connection failed: no response is due.
    Closed,
    /// The request is refused with this status and this reason.
    Refused(u16, &'static str),
}

impl From<io::Error> for RequestError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Refused(408, "the request timed out"),
            _ => Self::Closed,
        }
    }
}

/// Reads more octets, with a timeout at `until`.
fn read_more(connection: &mut impl Connection, until: Instant, into: &mut Vec<u8>) -> Result<(), RequestError> {
    let mut chunk = [0; 4096];
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::Error::from(ErrorKind::TimedOut).into());
    }
    connection.limit_read(left)?;
    match connection.read(&mut chunk) {
        Ok(0) => Err(RequestError::Closed),
        Ok(len) => {
            into.extend_from_slice(&chunk[..len]);
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Parses the head of a request. Returns the request, the length of its head and that of its body;
/// `None` if the head is incomplete.
fn parse_head(octets: &[u8]) -> Result<Option<(Request, usize, usize)>, RequestError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let len = match head.parse(octets) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(RequestError::Refused(431, "too many header fields")),
        Err(_) => return Err(RequestError::Refused(400, "the request is not HTTP")),
    };
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        Some("POST") => Method::Post,
        Some("DELETE") => Method::Delete,
        _ => return Err(RequestError::Refused(405, "expected the method GET, HEAD, POST or DELETE")),
    };
    let mut request = Request {
        method,
        path: head.path.unwrap_or("/").split(['?', '#']).next().unwrap_or("/").to_owned(),
        host: None,
        authorization: None,
        body: Vec::new(),
    };
    let mut body_len = None;
    for field in head.headers.iter() {
        let text = || std::str::from_utf8(field.value);
        match field.name.to_ascii_lowercase().as_str() {
            "host" if request.host.is_none() => {
                let host = text().map_err(|_| RequestError::Refused(400, "the header field Host is not text"))?;
                request.host = Some(host.to_owned());
            }
            "authorization" if request.authorization.is_none() => request.authorization = Some(field.value.to_vec()),
            "host" | "authorization" => return Err(RequestError::Refused(400, "a header field occurs twice")),
            "content-length" => {
                let len = text().ok().filter(|text| text.bytes().all(|digit| digit.is_ascii_digit())); // tidy-allow(dropped-cause): the refusal names the field.
                let len = len.and_then(|text| text.parse::<usize>().ok()); // tidy-allow(dropped-cause): the refusal names the field.
                let len = len.ok_or(RequestError::Refused(400, "the header field Content-Length is not a number"))?;
                if body_len.replace(len).is_some_and(|before| before != len) {
                    return Err(RequestError::Refused(400, "two header fields Content-Length differ"));
                }
            }
            "transfer-encoding" => return Err(RequestError::Refused(501, "transfer codings are not supported")),
            _ => {}
        }
    }
    let body_len = body_len.unwrap_or(0);
    if body_len > BODY_MAX {
        return Err(RequestError::Refused(413, "the body is too long"));
    }
    Ok(Some((request, len, body_len)))
}

/// Reads a request.
///
/// # Errors
/// The data is no request, too long, or too slow.
pub fn read_request(connection: &mut impl Connection) -> Result<Request, RequestError> {
    let until = Instant::now() + REQUEST_TIME;
    let mut octets = Vec::new();
    let (mut request, head_len, body_len) = loop {
        if let Some(head) = parse_head(&octets)? {
            break head;
        }
        if octets.len() > HEAD_MAX {
            return Err(RequestError::Refused(431, "the head of the request is too long"));
        }
        read_more(connection, until, &mut octets)?;
    };
    if head_len > HEAD_MAX {
        return Err(RequestError::Refused(431, "the head of the request is too long"));
    }
    while octets.len() < head_len + body_len {
        read_more(connection, until, &mut octets)?;
    }
    request.body = octets[head_len..head_len + body_len].to_vec();
    Ok(request)
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Content-Type header field.
    pub content_type: &'static str,
    /// Content of the response.
    pub body: Vec<u8>,
}

/// Header fields of every response: content is not cached, loads nothing from other origins, and
/// cannot be framed by other pages.
const FIELDS: &str = "Connection: close\r\n\
    Cache-Control: no-store\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

impl Response {
    /// Creates a response with content of a type.
    pub fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type, body: body.into() }
    }

    fn phrase(&self) -> &'static str {
        match self.status {
            200 => "OK",
            201 => "Created",
            202 => "Accepted",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            409 => "Conflict",
            413 => "Content Too Large",
            421 => "Misdirected Request",
            429 => "Too Many Requests",
            431 => "Request Header Fields Too Large",
            501 => "Not Implemented",
            503 => "Service Unavailable",
            _ => "Other",
        }
    }

    /// Writes the response, without its content if `has_body` is false.
    ///
    /// # Errors
    /// The connection fails, or the peer does not receive the response in time.
    pub fn write(&self, connection: &mut impl Connection, has_body: bool) -> io::Result<()> {
        let until = Instant::now() + RESPONSE_TIME;
        let challenge = if self.status == 401 { "WWW-Authenticate: Bearer realm=\"takt-sdn\"\r\n" } else { "" };
        let mut octets = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{FIELDS}{challenge}\r\n",
            self.status,
            self.phrase(),
            self.content_type,
            self.body.len()
        )
        .into_bytes();
        if has_body {
            octets.extend_from_slice(&self.body);
        }
        let mut rest = octets.as_slice();
        while !rest.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            connection.limit_write(left)?;
            match connection.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(len) => rest = &rest[len..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        connection.flush()
    }
}
