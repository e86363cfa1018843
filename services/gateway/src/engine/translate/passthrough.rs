//! `thru/<interface>`: a body handed to an interface as it is, and its reply handed back as it is, in the
//! envelope that services for such bodies speak. For interfaces that are kinds, see [`super::generic::Raw`].

use tg_schemas::Error;
use tg_schemas::msg::{PassthroughRequest, PassthroughResponse};

use super::fields::{Body, Fields};
use super::{About, Translate};

/// Any interface of a flow.
pub struct Passthrough;

impl Translate for Passthrough {
    type Question = PassthroughRequest;
    type Answer = PassthroughResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(PassthroughRequest {
            payload: body.whole().clone(),
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        part.payload
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_is_touched() {
        let body = json!({"workspace": "w", "x": [null, {"y": 1}]});
        let request = question::<Passthrough>(body.clone(), "").unwrap();
        assert_eq!(serde_json::Value::Object(request.payload.clone()), body);
        let reply = PassthroughResponse {
            payload: request.payload,
            ..Default::default()
        };
        assert_eq!(part::<Passthrough>(reply, ""), body);
    }
}
