//! Methods and notifications outside of the protocol: which server they go to, and whether they may.

use super::{
    Inner,
    route::{Route, Subject, server_params},
    router::{Router, Wait},
};
use crate::{aggregate::ToolTasks, upstream::CallerKey};
use bowline_policy::Ended;
use bowline_proto::{
    custom::check_custom_name,
    service::{Call, Outcome, Reply},
};
use bowline_types::{RawJson, RpcError, meta};

impl Router {
    /// Finds the server that a custom method is for: the one that its name starts with, as in `server/example.com/thing`,
    /// or else the only server there is.
    ///
    /// What a server answers is not known before it is called, so with several servers none can be guessed.
    pub(super) async fn route_custom(&self, name: &str, call: &Call) -> Result<Route, RpcError> {
        let members = self.members();
        let addressed = name.split_once('/').filter(|(_, method)| check_custom_name(method).is_ok());
        let addressed = addressed.and_then(|(server, method)| {
            let member = members.iter().find(|member| &*member.name == server)?;
            Some((member, method))
        });
        let (member, method) = match (addressed, &*members) {
            (Some(found), _) => found,
            (None, [only]) => (only, name),
            (None, _) => {
                let mut unknown = RpcError::method_not_found(name);
                unknown.message =
                    format!("method not found: {name}; prefix it with the server name: `SERVER/{name}`")
                        .into();
                return Err(unknown);
            }
        };
        let tenant = CallerKey::tenant(call);
        Ok(Route {
            instance: member.instance(&tenant),
            params: server_params(call)?,
            catalog: self.catalog(&tenant, Wait::Never).await,
            subject: Subject::Method(method.to_owned()),
            completion: None,
            tasks: ToolTasks::None,
            own_connection: None,
        })
    }
}

impl Inner {
    /// Passes a custom notification on to its server, if the policy lets it.
    pub(super) async fn pass_notification(&self, call: Call) -> Outcome {
        match self.notify_server(&call).await {
            Ok(()) => Outcome::Complete(Reply::Raw(RawJson::empty_object())),
            Err(error) => Outcome::Failed(error),
        }
    }

    async fn notify_server(&self, call: &Call) -> Result<(), RpcError> {
        let route = self.router.route_custom(call.method.as_str(), call).await?;
        let Subject::Method(method) = &route.subject else { return Ok(()) };
        let permit = self.asker.permit(&route, call, None).await;
        let permit = permit.map_err(|refusal| RpcError::internal(refusal.reason().to_owned()))?;
        let client = route.instance.client().await?;
        let sent = client.notify(method, &route.params).await;
        permit.finish(Ended::Completed, 0);
        sent.map_err(|error| RpcError::internal(error.to_string()))
    }
}

/// Returns the result of a custom method without members about the server's own connection.
pub(super) fn own_result(result: &RawJson) -> serde_json::Result<Reply> {
    let mut members = result.members()?;
    members.remove("resultType");
    if let Some(meta) = members.remove("_meta") {
        let mut meta = meta.members()?;
        meta.remove(meta::key::SERVER_INFO);
        if !meta.is_empty() {
            members.insert("_meta", RawJson::of(&meta)?);
        }
    }
    Ok(Reply::Raw(RawJson::of(&members)?))
}
