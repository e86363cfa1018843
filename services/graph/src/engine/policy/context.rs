//! What policies know of the user, as triples.

use oxigraph::model::vocab::rdf;
use oxigraph::model::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use tg_schemas::msg::UserContext;
use tg_schemas::vocabulary::user_context as uc;

/// Stands for a user whose id is no IRI.
const SOMEBODY: &str = "urn:user-context:user";

/// The facts of a user. What should be an IRI and is none becomes a text.
pub(crate) fn facts(user: &UserContext) -> Vec<Triple> {
    let iri = |text: &str| NamedNode::new(text).ok();
    let id = iri(&user.user_id).unwrap_or_else(|| NamedNode::new_unchecked(SOMEBODY));
    let mut facts = Facts {
        user: id.into(),
        said: Vec::new(),
    };
    let class = NamedNode::new_unchecked(uc::CLASS);
    facts.of_user(rdf::TYPE.as_str(), class.into());
    for unit in &user.organisational_units {
        facts.of_user(uc::ORGANISATIONAL_UNIT, thing(unit));
    }
    for role in &user.roles {
        facts.of_user(uc::ROLE, thing(role));
    }
    if !user.purpose.is_empty() {
        facts.of_user(uc::PURPOSE, thing(&user.purpose));
    }
    for one in &user.assignments {
        let node = facts.more(uc::HAS_ASSIGNMENT);
        facts.thing(&node, uc::RESOURCE, &one.resource);
        for (predicate, value) in [
            (uc::SCOPE, &one.scope),
            (uc::STATUS, &one.status),
            (uc::VALID_FROM, &one.valid_from),
            (uc::VALID_TO, &one.valid_to),
        ] {
            facts.text(&node, predicate, value);
        }
        if !one.qualifiers.is_empty() {
            let qualifiers = BlankNode::default();
            facts.add(&node, uc::QUALIFIERS, qualifiers.clone().into());
            for (name, value) in &one.qualifiers {
                if let Some(name) = iri(&format!("{}{name}", uc::NAMESPACE)) {
                    facts.add(&qualifiers.clone().into(), name.as_str(), literal(value));
                }
            }
        }
    }
    for one in &user.entitlements {
        let node = facts.more(uc::HAS_ENTITLEMENT);
        for (predicate, value) in [
            (uc::RESOURCE_SCOPE, &one.resource_scope),
            (uc::ACCESS_LEVEL, &one.access_level),
            (uc::VALID_FROM, &one.valid_from),
            (uc::VALID_TO, &one.valid_to),
        ] {
            facts.text(&node, predicate, value);
        }
    }
    for one in &user.override_authorities {
        let node = facts.more(uc::HAS_OVERRIDE_AUTHORITY);
        facts.text(&node, uc::POLICY_AREA, &one.policy_area);
        facts.text(&node, uc::CONDITION, &one.condition);
    }
    if let Some(one) = &user.delegation {
        let node = facts.more(uc::HAS_DELEGATION);
        facts.thing(&node, uc::DELEGATOR_ID, &one.delegator_id);
        facts.text(&node, uc::SCOPE, &one.scope);
    }
    facts.said
}

struct Facts {
    user: NamedOrBlankNode,
    said: Vec<Triple>,
}

impl Facts {
    fn add(&mut self, subject: &NamedOrBlankNode, predicate: &str, object: Term) {
        let predicate = NamedNode::new_unchecked(predicate);
        let triple = Triple::new(subject.clone(), predicate, object);
        self.said.push(triple);
    }

    fn of_user(&mut self, predicate: &str, object: Term) {
        let user = self.user.clone();
        self.add(&user, predicate, object);
    }

    /// A node of its own that the user has.
    fn more(&mut self, predicate: &str) -> NamedOrBlankNode {
        let node = BlankNode::default();
        self.of_user(predicate, node.clone().into());
        node.into()
    }

    fn text(&mut self, subject: &NamedOrBlankNode, predicate: &str, value: &str) {
        if !value.is_empty() {
            self.add(subject, predicate, literal(value));
        }
    }

    fn thing(&mut self, subject: &NamedOrBlankNode, predicate: &str, value: &str) {
        if !value.is_empty() {
            self.add(subject, predicate, thing(value));
        }
    }
}

fn literal(text: &str) -> Term {
    Literal::new_simple_literal(text).into()
}

fn thing(text: &str) -> Term {
    match NamedNode::new(text) {
        Ok(iri) => iri.into(),
        Err(_) => literal(text),
    }
}
