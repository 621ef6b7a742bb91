//! Examines how a server announces its authorization, without logging in.

use super::{
    account::Account,
    fetch::run,
    session::{now, reported},
};
use crate::client::{HttpTarget, PostAnswer};
use bowline_auth::{
    Challenge, Error, Issuer, ProtectedResource, ResourceDiscovery, ServerDiscovery, ServerMetadata,
};
use bowline_client::Result;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

/// At most this many authorization servers are examined.
const MAX_SERVERS: usize = 4;

/// How a server announces its authorization; see [`HttpTarget::check_authorization`].
#[derive(Debug)]
#[non_exhaustive]
pub struct AuthorizationCheck {
    /// Whether the response without a token has a `Bearer` or `DPoP` challenge.
    pub has_challenge: bool,
    /// The URL of the metadata in the challenge.
    pub announced: Option<String>,
    /// The metadata of the resource; `None` if the server publishes none, as in 2025-03-26.
    pub resource: Result<Option<ProtectedResource>, Error>,
    /// The authorization servers, each with its metadata; `None` if it publishes none.
    pub servers: Vec<(Issuer, Result<Option<ServerMetadata>, Error>)>,
    /// By how many seconds the clock of the server is ahead of ours, if it sends its time.
    pub clock_difference: Option<i64>,
    /// The login that is stored.
    pub account: Option<Account>,
}

impl HttpTarget {
    /// Sends a request without credentials, which a protected server answers with its challenge.
    pub(super) async fn ping_without_credentials(&self) -> Result<PostAnswer> {
        let headers = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
        ]);
        let ping = Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#);
        let answer = self.probe(Method::POST, headers, ping).await;
        answer.map_err(|error| bowline_client::Error::unreachable(error.to_string()))
    }

    /// Examines how the server announces its authorization. Sends no tokens, registers no client and asks nobody. `None` if
    /// the server answers without a token.
    ///
    /// The target needs a [login](Self::login).
    pub async fn check_authorization(&self) -> Result<Option<AuthorizationCheck>> {
        let session = self.session()?;
        let answer = self.ping_without_credentials().await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(None);
        }
        let lines = answer.headers.get_all(header::WWW_AUTHENTICATE).iter();
        let challenges = Challenge::parse_all(lines.filter_map(|line| line.to_str().ok()));
        let mut ours = challenges.iter().filter(|challenge| challenge.is("bearer") || challenge.is("dpop"));
        let has_challenge = ours.clone().next().is_some();
        let announced = ours.find_map(|challenge| challenge.resource_metadata()).map(str::to_owned);
        let inner = &session.inner;
        let resource = match ResourceDiscovery::new(&inner.rules, announced.as_deref()) {
            Ok(mut discovery) => run(&inner.fetcher, |reply| discovery.next(reply)).await,
            Err(error) => Err(error),
        };
        let mut servers = Vec::new();
        match &resource {
            Ok(Some(resource)) => {
                for issuer in resource.servers.iter().take(MAX_SERVERS) {
                    let found = match ServerDiscovery::new(&inner.rules, issuer.clone()) {
                        Ok(mut discovery) => run(&inner.fetcher, |reply| discovery.next(reply)).await,
                        Err(error) => Err(error),
                    };
                    servers.push((issuer.clone(), found));
                }
            }
            Ok(None) => {
                let mut discovery = ServerDiscovery::legacy(&inner.rules).map_err(reported)?;
                let found = run(&inner.fetcher, |reply| discovery.next(reply)).await;
                let issuer = match &found {
                    Ok(Some(server)) => server.issuer.clone(),
                    _ => Issuer::of_endpoint(inner.rules.server()).map_err(reported)?,
                };
                servers.push((issuer, found));
            }
            Err(_) => {}
        }
        let time = answer.headers.get(header::DATE).and_then(|date| date.to_str().ok());
        let time = time.and_then(seconds_of_date);
        let clock_difference = time.and_then(|time| i64::try_from(time).ok()?.checked_sub_unsigned(now()));
        let account = self.account().await?;
        Ok(Some(AuthorizationCheck {
            has_challenge,
            announced,
            resource,
            servers,
            clock_difference,
            account,
        }))
    }
}

/// Reads the time of a `Date` header, such as `Sun, 06 Nov 1994 08:49:37 GMT`, in seconds since 1970.
fn seconds_of_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.split(' ');
    let day: u64 = words.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let name = words.next()?;
    let month = u64::try_from(MONTHS.iter().position(|month| *month == name)?).ok()? + 1;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok().filter(|part| *part <= 60));
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    if words.next() != Some("GMT") {
        return None;
    }
    // Years start in March here, so that the leap day is the last day of a year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = (year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1).checked_sub(719_468)?;
    Some(days * 86_400 + hours * 3600 + minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::seconds_of_date;

    #[test]
    fn the_time_of_a_response_is_read() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 12:00:00 GMT", Some(1_709_208_000)),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sun, 99 Nov 1994 08:49:37 GMT", None),
            ("yesterday", None),
        ] {
            assert_eq!(seconds_of_date(text), seconds, "{text}");
        }
    }
}
