//! A pattern of the contract: any of subject, predicate, object and graph may be open.

use oxigraph::model::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term as RdfTerm};
use tg_schemas::{Term, is_drawn_label};

use crate::engine::convert;
use crate::error::GraphError;

/// What quads must look like. Open components match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Subject.
    pub subject: Option<NamedOrBlankNode>,
    /// Predicate.
    pub predicate: Option<NamedNode>,
    /// Object.
    pub object: Option<RdfTerm>,
    /// One graph; open means all graphs, also the default one.
    pub graph: Option<GraphName>,
}

/// A pattern as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Something may match.
    Pattern(Pattern),
    /// Valid, and nothing can ever match, e.g. a literal as subject.
    Nothing,
}

impl Pattern {
    /// Reads a pattern. `graph`: nothing or `*` means all graphs, empty text the default graph.
    ///
    /// # Errors
    /// [`GraphError::Term`] for a term that is not valid, by its field.
    pub fn read(
        s: Option<&Term>,
        p: Option<&Term>,
        o: Option<&Term>,
        graph: Option<&str>,
    ) -> Result<Asked, GraphError> {
        let empty = Term::Iri(String::new());
        if [s, p, o].contains(&Some(&empty))
            || matches!(s, Some(Term::Literal { .. }))
            || matches!(p, Some(Term::Literal { .. } | Term::Blank(_)))
        {
            return Ok(Asked::Nothing);
        }
        let predicate = match p {
            // A blank node, which is no predicate.
            Some(Term::Iri(label)) if is_drawn_label(label) => return Ok(Asked::Nothing),
            Some(Term::Iri(iri)) => Some(convert::iri("p", iri)?),
            Some(_) => {
                return Err(GraphError::Term {
                    field: "p".to_owned(),
                    why: "a predicate must be an IRI".to_owned(),
                });
            }
            None => None,
        };
        Ok(Asked::Pattern(Self {
            subject: s.map(|term| convert::subject("s", term)).transpose()?,
            predicate,
            object: o.map(|term| convert::object("o", term)).transpose()?,
            graph: match graph {
                None | Some("*") => None,
                Some("") => Some(GraphName::DefaultGraph),
                Some(graph) => Some(convert::graph("g", graph)?),
            },
        }))
    }

    /// The plain definition of matching; the store's indexes must agree with it.
    pub fn matches(&self, quad: &Quad) -> bool {
        self.subject.as_ref().is_none_or(|s| *s == quad.subject)
            && self.predicate.as_ref().is_none_or(|p| *p == quad.predicate)
            && self.object.as_ref().is_none_or(|o| *o == quad.object)
            && self.graph.as_ref().is_none_or(|g| *g == quad.graph_name)
    }
}
