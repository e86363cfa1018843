//! With no key: `builtin` answers questions over a dataset made up here, and says what it is.

use anyhow::Result;
use serde_json::json;
use tg_testkit::socket::{Socket, text_of};

use crate::shared::Workspace;
use crate::world::{Bus, on_both_buses};

/// Letters drawn at test time: no name of this dataset stands in the code.
fn made_up(len: usize) -> String {
    let mut seed = uuid::Uuid::new_v4().as_u128();
    let mut word = String::new();
    for n in 0..len {
        let letters = if n % 2 == 0 {
            "bdfgklmnprstvz"
        } else {
            "aeiou"
        };
        let at = (seed % letters.len() as u128) as usize;
        word.push(letters.as_bytes()[at] as char);
        seed /= letters.len() as u128;
    }
    word[..1].to_uppercase() + &word[1..]
}

/// A name that is no other's.
fn thing() -> String {
    format!("{} {}", made_up(7), made_up(9))
}

/// Names, values and relations of this moment: no list of words holds any of them.
async fn whatever_its_words_are(place: &Workspace, socket: &Socket) -> Result<()> {
    let relations = [8, 9, 10].map(|len| made_up(len).to_lowercase());
    let (about, values) = (thing(), [0; 3].map(|_| thing()));
    let mut lines = vec![
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .".to_owned(),
        format!("<http://made.example.net/0> rdfs:label \"{about}\" ."),
    ];
    for (n, (relation, value)) in relations.iter().zip(&values).enumerate() {
        let (predicate, object) = (
            format!("<http://made.example.net/p{n}>"),
            format!("<http://made.example.net/v{n}>"),
        );
        lines.push(format!("{predicate} rdfs:label \"{relation}\" ."));
        lines.push(format!("{object} rdfs:label \"{value}\" ."));
        lines.push(format!(
            "<http://made.example.net/0> {predicate} {object} ."
        ));
    }
    let file = tempfile::NamedTempFile::with_suffix(".ttl")?;
    std::fs::write(file.path(), lines.join("\n") + "\n")?;
    let path = file.path().to_string_lossy().into_owned();
    let loaded = place.tg(&["load-turtle", "-i", "made", &path]).await?;
    assert_eq!(loaded.code, Some(0), "{loaded:?}");
    for (relation, value) in relations.iter().zip(&values) {
        let question = format!("What is the {relation} of {about}?");
        answers(socket, &question, value).await?;
    }
    Ok(())
}

/// The question is answered with this, by the model that says what it is.
async fn answers(socket: &Socket, question: &str, expected: &str) -> Result<()> {
    let request = json!({"question": question, "streaming": true});
    let frames = socket.ask("agent", "default", request).await?;
    let answer = text_of(&frames, "answer");
    assert!(
        answer.contains(expected),
        "{question}: {answer}\n{frames:#?}"
    );
    let model = frames
        .last()
        .map(|frame| frame["response"]["model"].clone());
    assert_eq!(
        model,
        Some(json!("builtin (extractive, not a language model)"))
    );
    Ok(())
}

async fn three_questions_over_a_dataset_of_the_moment(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let (bridge, river, maker) = (made_up(8), made_up(7), made_up(9));
    let year = 1200 + (uuid::Uuid::new_v4().as_u128() % 700);
    let file = tempfile::NamedTempFile::with_suffix(".ttl")?;
    std::fs::write(
        file.path(),
        format!(
            "@prefix ex: <http://data.example.net/v#> .\n\
             @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
             ex:built rdfs:label \"built\" . ex:crosses rdfs:label \"crosses\" .\n\
             ex:architect rdfs:label \"architect\" .\n\
             <http://data.example.net/b> rdfs:label \"{bridge} Bridge\" ; ex:built \"{year}\" ;\n\
               ex:crosses <http://data.example.net/r> ; ex:architect <http://data.example.net/m> .\n\
             <http://data.example.net/r> rdfs:label \"River {river}\" .\n\
             <http://data.example.net/m> rdfs:label \"{maker}\" .\n"
        ),
    )?;
    let path = file.path().to_string_lossy().into_owned();
    let loaded = place.tg(&["load-turtle", "-i", "bridges", &path]).await?;
    assert_eq!(loaded.code, Some(0), "{loaded:?}");

    let socket = place.socket().await?;
    for (question, expected) in [
        (
            format!("When was the {bridge} Bridge built?"),
            year.to_string(),
        ),
        (
            format!("Which river does the {bridge} Bridge cross?"),
            river,
        ),
        (
            format!("Who is the architect of the {bridge} Bridge?"),
            maker,
        ),
    ] {
        answers(&socket, &question, &expected).await?;
    }
    whatever_its_words_are(&place, &socket).await
}

on_both_buses!(three_questions_over_a_dataset_of_the_moment);
