//! What a parsed query is made of: its form, whether it names graphs, and how much there is to plan. The
//! optimiser does not hear cancellation, and its time grows with the cube of the patterns it can reorder.

use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, Expression, GraphPattern, OrderExpression, PropertyPathExpression,
};

use crate::error::GraphError;
use crate::store::Form;

/// Most triple patterns (about a second of planning).
const PATTERNS: usize = 100;
/// Most unions: the optimiser flattens them in a time that grows with their cube too.
const UNIONS: usize = 250;
/// Most operators, expressions and path steps.
const NODES: usize = 4_000;

/// What a query is made of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) form: Form,
    pub(super) names_graphs: bool,
}

impl Shape {
    /// Looks at a query; refuses one that is too large to plan.
    pub(super) fn of(query: &Query) -> Result<Self, GraphError> {
        let (form, pattern) = match query {
            Query::Select { pattern, .. } => (Form::Select, pattern),
            Query::Ask { pattern, .. } => (Form::Ask, pattern),
            Query::Construct { pattern, .. } => (Form::Construct, pattern),
            Query::Describe { pattern, .. } => (Form::Describe, pattern),
        };
        let mut count = Count::default();
        count.pattern(pattern);
        for (has, most, what) in [
            (count.patterns, PATTERNS, "triple patterns"),
            (count.unions, UNIONS, "unions"),
            (count.nodes, NODES, "operators"),
        ] {
            if has > most {
                let why = format!("query: has more than {most} {what}");
                return Err(GraphError::QuerySyntax(why));
            }
        }
        if count.asks_others {
            let why = "query: SERVICE asks another endpoint, and no query does that here; \
                       ask that endpoint itself, or leave the part out with SERVICE SILENT";
            return Err(GraphError::QuerySyntax(why.to_owned()));
        }
        Ok(Self {
            form,
            names_graphs: count.names_graphs,
        })
    }
}

/// Counts while walking. Recursion is bounded by the text's length and the thread's stack.
#[derive(Default)]
struct Count {
    patterns: usize,
    unions: usize,
    nodes: usize,
    names_graphs: bool,
    /// Another endpoint must answer a part of it.
    asks_others: bool,
}

impl Count {
    fn pattern(&mut self, pattern: &GraphPattern) {
        self.nodes += 1;
        match pattern {
            GraphPattern::Bgp { patterns } => self.patterns += patterns.len(),
            GraphPattern::Path { path, .. } => {
                self.patterns += 1;
                self.path(path);
            }
            GraphPattern::Union { left, right } => {
                self.unions += 1;
                self.pattern(left);
                self.pattern(right);
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Minus { left, right }
            | GraphPattern::Lateral { left, right } => {
                self.pattern(left);
                self.pattern(right);
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                self.pattern(left);
                self.pattern(right);
                self.expressions(expression);
            }
            GraphPattern::Filter { expr, inner } => {
                self.expression(expr);
                self.pattern(inner);
            }
            GraphPattern::Graph { inner, .. } => {
                self.names_graphs = true;
                self.pattern(inner);
            }
            GraphPattern::Extend {
                inner, expression, ..
            } => {
                self.expression(expression);
                self.pattern(inner);
            }
            GraphPattern::OrderBy { inner, expression } => {
                for order in expression {
                    let (OrderExpression::Asc(by) | OrderExpression::Desc(by)) = order;
                    self.expression(by);
                }
                self.pattern(inner);
            }
            GraphPattern::Group {
                inner, aggregates, ..
            } => {
                for (_, aggregate) in aggregates {
                    self.nodes += 1;
                    if let AggregateExpression::FunctionCall { expr, .. } = aggregate {
                        self.expression(expr);
                    }
                }
                self.pattern(inner);
            }
            GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. } => self.pattern(inner),
            // A silent one may fail, so it asks nobody; nor does what stands within.
            GraphPattern::Service { inner, silent, .. } => {
                let asks_others = self.asks_others || !silent;
                self.pattern(inner);
                self.asks_others = asks_others;
            }
            GraphPattern::Values { .. } => {}
        }
    }

    fn path(&mut self, path: &PropertyPathExpression) {
        self.nodes += 1;
        match path {
            PropertyPathExpression::Sequence(a, b) | PropertyPathExpression::Alternative(a, b) => {
                self.path(a);
                self.path(b);
            }
            PropertyPathExpression::Reverse(inner)
            | PropertyPathExpression::ZeroOrMore(inner)
            | PropertyPathExpression::OneOrMore(inner)
            | PropertyPathExpression::ZeroOrOne(inner) => self.path(inner),
            PropertyPathExpression::NamedNode(_)
            | PropertyPathExpression::NegatedPropertySet(_) => {}
        }
    }

    fn expressions<'a>(&mut self, all: impl IntoIterator<Item = &'a Expression>) {
        all.into_iter().for_each(|one| self.expression(one));
    }

    fn expression(&mut self, expression: &Expression) {
        self.nodes += 1;
        match expression {
            Expression::NamedNode(_)
            | Expression::Literal(_)
            | Expression::Variable(_)
            | Expression::Bound(_) => {}
            Expression::Or(a, b)
            | Expression::And(a, b)
            | Expression::Equal(a, b)
            | Expression::SameTerm(a, b)
            | Expression::Greater(a, b)
            | Expression::GreaterOrEqual(a, b)
            | Expression::Less(a, b)
            | Expression::LessOrEqual(a, b)
            | Expression::Add(a, b)
            | Expression::Subtract(a, b)
            | Expression::Multiply(a, b)
            | Expression::Divide(a, b) => {
                self.expression(a);
                self.expression(b);
            }
            Expression::UnaryPlus(a) | Expression::UnaryMinus(a) | Expression::Not(a) => {
                self.expression(a);
            }
            // A list of plain terms is cheap, however long.
            Expression::In(a, list) => {
                self.expression(a);
                let plain = |term: &&Expression| {
                    !matches!(term, Expression::NamedNode(_) | Expression::Literal(_))
                };
                self.expressions(list.iter().filter(plain));
            }
            Expression::Exists(pattern) => self.pattern(pattern),
            Expression::If(a, b, c) => self.expressions([&**a, &**b, &**c]),
            Expression::Coalesce(list) | Expression::FunctionCall(_, list) => {
                self.expressions(list);
            }
        }
    }
}
