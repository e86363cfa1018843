//! The one table of sizes, in bytes (pages also in entries). Every layer that bounds what it takes reads it here, and the assertions
//! below hold the lines to one another: what one layer accepts, the next can carry.

/// Largest body of a message: a question, a part of an answer, a notice, a record.
pub const MESSAGE: usize = 16 << 20;

/// Largest part of an answer. An answer that is longer is streamed or asked for in pages.
pub const PART: usize = MESSAGE;

/// Largest record.
pub const RECORD: usize = MESSAGE;

/// Largest frame that is agreed with a broker. The client library keeps room for 32 of them in each direction of each
/// connection, and uses all of it in turn; a larger body travels in several.
pub const FRAME: usize = 20 << 10;

/// Largest frame that is agreed with a broker for reading once one came that was longer than [`FRAME`]: what nodes agree
/// with any publisher unless their administrator lets them take more, so its headers can be read, too.
pub const LONGEST_FRAME: usize = 128 << 10;

/// Room for the headers of a message, beside its body: unlike a body they travel in one frame.
pub const HEADERS: usize = FRAME - (1 << 10);

/// From so many bytes on, work on them leaves the threads that the runtime keeps for short work.
pub const OFFLOAD: usize = 64 << 10;

/// Largest document that is taken apart.
pub const DOCUMENT: usize = 256 << 20;

/// Largest record that can be dead-lettered. Its body travels as it is, what is said of it travels in headers: whatever
/// was accepted as a record can be dead-lettered.
pub const DEAD_LETTER: usize = RECORD;

/// Longest reason of a dead letter; longer ones are cut.
pub const DEAD_LETTER_DETAIL: usize = 2 << 10;

/// Longest reason in a receipt; longer ones are cut.
pub const RECEIPT_DETAIL: usize = 1 << 9;

/// Longest wire type of an error that is kept, with a dead letter or in a report, in bytes.
pub const ERROR_KIND: usize = 64;

/// Headers of a record that are kept with it; of longer ones only those that replaying needs, none of which is longer
/// than [`DEAD_LETTER_HEADER`].
pub const DEAD_LETTER_HEADERS: usize = 7 << 9;

/// Longest of the headers that replaying needs.
pub const DEAD_LETTER_HEADER: usize = 640;

/// Bytes kept of a record that cannot be dead-lettered whole.
pub const DEAD_LETTER_CUT: usize = 64 << 10;

/// Room for what a message says beside the content that it carries.
pub const BESIDE_CONTENT: usize = 1 << 20;

/// Longest base64 text of content in one message.
pub const CONTENT_TEXT: usize = MESSAGE - BESIDE_CONTENT;

/// Most bytes of content in one message: a whole document, a chunk of an upload, a batch of texts. What is longer
/// is streamed, or uploaded in chunks.
pub const CONTENT: usize = raw(CONTENT_TEXT);

/// A chunk of an upload when the client names none.
pub const UPLOAD_CHUNK: usize = 2 << 20;

/// A piece of streamed content when the client names none.
pub const STREAM_PIECE: usize = 1 << 20;

/// Largest piece of streamed content.
pub const LARGEST_PIECE: usize = 8 << 20;

/// A part of content that our own programs send: of a document of a core, of a file of a command. A multiple of three, so that
/// the base64 texts of parts can be joined.
pub const CONTENT_PART: usize = 3 << 20;

/// Longest text of which a vector is made.
pub const EMBEDDED_TEXT: usize = 1 << 20;

/// Longest question to an agent: it travels with every step of its run.
pub const AGENT_QUESTION: usize = 1 << 20;

/// Longest reply of a model in which an agent looks for its next step.
pub const AGENT_REPLY: usize = 1 << 20;

/// Longest text of one kind (thoughts, observations, answer) where a dialog of an agent is answered as a whole.
pub const DIALOG_TEXT: usize = 4 << 20;

/// Longest text that a template of a prompt becomes.
pub const PROMPT_TEXT: usize = 8 << 20;

/// Most bytes of what a tool answers.
pub const TOOL_RESULT: usize = 1 << 20;

/// Most bytes of what a server says of its tools.
pub const MCP_TOOLS: usize = 128 << 10;

/// Longest schema of one of them.
pub const MCP_SCHEMA: usize = 16 << 10;

/// Largest picture.
pub const PICTURE: usize = 8 << 20;

/// Largest payload of a message between listeners.
pub const THREAD_PAYLOAD: usize = 1 << 20;

/// What the patterns in the schemas of all listeners of a workspace take together once they are compiled.
pub const LISTENER_PATTERNS: usize = 4 << 20;

/// Most bytes of the messages of a session that are answered at once, also in one document, or summed up at once.
pub const SESSION_TEXTS: usize = 8 << 20;

/// Longest summary of a part of a session that is taken from a model.
pub const SESSION_SUMMARY: usize = 64 << 10;

/// Most bytes of the passages that an answer is judged by.
pub const JUDGED_TEXTS: usize = 1 << 20;

/// Largest message that joins several small parts of an answer.
pub const JOINED: usize = 256 << 10;

/// Bytes of an answer sent ahead of what its reader has used up.
pub const WINDOW: usize = 4 << 20;

/// Bytes of an answer that its reader used up, after which it says so.
pub const CREDIT: usize = 1 << 20;

/// Bytes of an answer that wait for a reader that is behind: a full window, and one largest part on top of it.
pub const WAITING: usize = WINDOW + PART;

/// Bytes of ended answers that are kept for repeats.
pub const REPEATS: usize = 32 << 20;

/// What a gateway keeps of one stream that may be joined again, by an estimate of its memory.
pub const KEPT_STREAM: usize = 16 << 20;

/// What it keeps of those of one workspace.
pub const KEPT_OF_WORKSPACE: usize = 64 << 20;

/// What it keeps of all of them.
pub const KEPT_STREAMS: usize = 128 << 20;

/// Text of parts of such a stream in one message to another gateway. A longer part travels in pieces.
pub const KEPT_PIECE: usize = 1 << 20;

/// Longest text of a model that is read.
pub const MODEL_TEXT: usize = MESSAGE - BESIDE_CONTENT;

/// Models that a chat names to be asked where the first one cannot be.
pub const CHAT_MODELS: usize = 16;

/// Pictures in the turns of a chat; together they are as large as one.
pub const CHAT_PICTURES: usize = 16;

/// Longest address that a picture of a chat is fetched from.
pub const PICTURE_ADDRESS: usize = 2048;

/// Calls of models that one message reports to the agent, to count them.
pub const USAGE_CALLS: usize = 256;

/// Largest body of a chat as clients of the OpenAI API send it.
pub const CHAT_BODY: usize = 10_000_000;

/// Largest message of a client of the Model Context Protocol. A longer document goes in by the endpoints of the library.
pub const MCP_MESSAGE: usize = 4 << 20;

/// Longest text of an answer to such a client; what is longer is cut, and says so.
pub const MCP_TEXT: usize = 256 << 10;

/// Largest answer to such a client that is not cut; one that is larger is refused.
pub const MCP_ANSWER: usize = 1 << 20;

/// Longest name of a model.
pub const MODEL_NAME: usize = 256;

/// Largest answer of a provider or a tool that comes as a whole, with what it says beside its content.
pub const PROVIDER_ANSWER: usize = 32 << 20;

/// Largest answer of a provider of vectors: numbers are written as text.
pub const VECTORS_ANSWER: usize = 128 << 20;

/// Largest answer of a provider that ranks texts.
pub const RANKS_ANSWER: usize = 8 << 20;

/// Records that wait for one who looks on while they pass, in bytes.
pub const TAP: usize = 32 << 20;

/// Frames of one import that the bus has not confirmed yet, in bytes; beyond them no more are read.
pub const IMPORT_WINDOW: usize = MESSAGE;

/// Largest body over REST of a known caller. What is longer than a message is refused or cut by its endpoint.
pub const REST_BODY: usize = 256 << 20;

/// Largest frame of a known caller's socket.
pub const SOCKET_FRAME: usize = 50 << 20;

/// Longest base64 text of a document that is sent in one frame of a socket.
pub const SOCKET_TEXT: usize = 48 << 20;

/// Largest frame that a client of the gateway reads.
pub const SOCKET_ANSWER: usize = 64 << 20;

/// Largest value in the configuration.
pub const CONFIG_VALUE: usize = 1 << 20;

/// Longest key in the configuration.
pub const CONFIG_KEY: usize = 1024;

/// Bytes of entries after which a page of a listing ends; its last entry may exceed them.
pub const PAGE_BYTES: usize = 1 << 20;

/// Most entries of a page.
pub const PAGE_MOST: usize = 10_000;

/// Most workspaces of a system; as many deleted ones are remembered.
pub const WORKSPACES: usize = 10_000;

/// Most numbers of a vector.
pub const DIMENSIONS: usize = 16_384;

/// Entries of a page whose asker names no limit.
pub const PAGE_USUAL: usize = 1000;

/// Most bytes of configuration in one workspace, where the settings say nothing else.
pub const CONFIG_WORKSPACE: usize = 128 << 20;

/// What a row of the configuration counts beside its type, key and value: about what it needs in memory, where it is kept
/// and in a process that reads it. So bytes bound the number of rows, too.
pub const CONFIG_ROW: usize = 256;

/// Most bytes of one type, in a workspace whose configuration may have so many: each process reads whole types.
pub const fn config_type(workspace: usize) -> usize {
    workspace / 2
}

/// What all servers of tools say that they have, as a process keeps it; the answer not used for longest goes first.
pub const SERVERS_KEPT: u64 = 32 << 20;

/// A text in JSON is at most this many times as long: a control character becomes six.
pub const JSON_GROWTH: usize = 6;

/// Length of the base64 text of so many bytes.
pub const fn base64(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// Bytes that fit into base64 text of this length.
pub const fn raw(text: usize) -> usize {
    text / 4 * 3
}

const _: () = {
    assert!(PART <= MESSAGE && RECORD <= MESSAGE);
    // A record becomes a dead letter with its body as it is; the headers it came with are a text within a text there, in
    // which a quote becomes two characters. Of what is told of its failure control characters are left out.
    assert!(RECORD <= DEAD_LETTER && DEAD_LETTER <= MESSAGE);
    assert!(2 * DEAD_LETTER_HEADERS + 2 * (DEAD_LETTER_DETAIL + ERROR_KIND) + (3 << 10) <= HEADERS);
    assert!(5 * DEAD_LETTER_HEADER + (3 << 7) <= DEAD_LETTER_HEADERS);
    assert!(HEADERS < FRAME && FRAME <= LONGEST_FRAME);
    assert!(DEAD_LETTER_CUT < DEAD_LETTER);
    // Content travels as base64 within a message.
    assert!(base64(CONTENT) <= CONTENT_TEXT && CONTENT_TEXT + BESIDE_CONTENT <= MESSAGE);
    assert!(UPLOAD_CHUNK <= CONTENT && STREAM_PIECE <= LARGEST_PIECE && LARGEST_PIECE <= CONTENT);
    assert!(CONTENT_PART.is_multiple_of(3) && CONTENT_PART <= LARGEST_PIECE);
    assert!(base64(CONTENT_PART) + BESIDE_CONTENT <= MESSAGE);
    // With what the model said of a step, and what it is told.
    assert!(JSON_GROWTH * AGENT_QUESTION + BESIDE_CONTENT <= RECORD);
    assert!(JSON_GROWTH * EMBEDDED_TEXT + BESIDE_CONTENT <= MESSAGE);
    // A step carries the question and what the model replied, a dialog as a whole what was found in any reply.
    assert!(JSON_GROWTH * (AGENT_QUESTION + AGENT_REPLY) + BESIDE_CONTENT <= RECORD);
    assert!(AGENT_REPLY <= MODEL_TEXT && AGENT_REPLY <= DIALOG_TEXT);
    assert!(3 * DIALOG_TEXT + BESIDE_CONTENT <= SOCKET_ANSWER);
    assert!(PROMPT_TEXT + BESIDE_CONTENT <= MESSAGE && TOOL_RESULT <= PROVIDER_ANSWER);
    assert!(JSON_GROWTH * TOOL_RESULT + BESIDE_CONTENT <= MESSAGE);
    assert!(MCP_SCHEMA <= MCP_TOOLS && JSON_GROWTH * MCP_TOOLS + BESIDE_CONTENT <= MESSAGE);
    // A picture travels as base64 in one message.
    assert!(PICTURE <= CONTENT && base64(PICTURE) + BESIDE_CONTENT <= MESSAGE);
    assert!(JSON_GROWTH * THREAD_PAYLOAD + BESIDE_CONTENT <= MESSAGE);
    // A document of a session fits into a message, and is taken in again; so does a page of messages, with its last one.
    assert!(SESSION_TEXTS + BESIDE_CONTENT <= MESSAGE && SESSION_TEXTS <= CHAT_BODY);
    assert!(SESSION_SUMMARY <= SESSION_TEXTS && SESSION_SUMMARY <= AGENT_REPLY);
    assert!(JSON_GROWTH * (PAGE_BYTES + AGENT_REPLY) + BESIDE_CONTENT <= PART);
    assert!(JSON_GROWTH * (PAGE_BYTES + TOOL_RESULT) + BESIDE_CONTENT <= PART);
    assert!(JSON_GROWTH * JUDGED_TEXTS + BESIDE_CONTENT <= MESSAGE);
    assert!(MODEL_TEXT + BESIDE_CONTENT <= MESSAGE);
    assert!(MODEL_TEXT + BESIDE_CONTENT <= PROVIDER_ANSWER);
    // Whoever looks on has room for the largest record, and for one that it waits behind; one frame fits into a window.
    assert!(2 * RECORD <= TAP && MESSAGE <= IMPORT_WINDOW);
    // Whatever the endpoints take at once, one message at least fits into it.
    assert!(MESSAGE <= SOCKET_FRAME && SOCKET_FRAME <= REST_BODY);
    assert!(SOCKET_TEXT + MESSAGE <= SOCKET_ANSWER);
    // Answers: what is on its way fits into what waits; an ended one can be kept.
    assert!(
        JOINED <= WINDOW && 2 * CREDIT <= WINDOW && WINDOW + PART <= WAITING && PART <= REPEATS
    );
    // One workspace cannot take all that is kept of streams, nor one stream all of a workspace's.
    assert!(KEPT_STREAM < KEPT_OF_WORKSPACE && KEPT_OF_WORKSPACE < KEPT_STREAMS);
    assert!(KEPT_PIECE <= KEPT_STREAM && JSON_GROWTH * KEPT_PIECE + BESIDE_CONTENT <= PART);
    // A page of configuration fits into a part, with its last row and whatever characters it is made of.
    assert!(JSON_GROWTH * (PAGE_BYTES + CONFIG_VALUE) + BESIDE_CONTENT <= PART);
    assert!(0 < PAGE_USUAL && PAGE_USUAL <= PAGE_MOST);
    assert!(CONFIG_VALUE <= config_type(CONFIG_WORKSPACE));
};

/// "16 MiB": a limit as people read it.
pub fn human(bytes: usize) -> String {
    const MIB: usize = 1 << 20;
    const KIB: usize = 1 << 10;
    if bytes >= MIB && bytes.is_multiple_of(MIB) {
        format!("{} MiB", bytes / MIB)
    } else if bytes >= MIB {
        format!("{:.1} MiB", bytes as f64 / MIB as f64)
    } else if bytes >= KIB {
        format!("{} KiB", bytes / KIB)
    } else {
        format!("{bytes} bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_in_round_words() {
        assert_eq!(human(MESSAGE), "16 MiB");
        assert_eq!(human(HEADERS), "19 KiB");
        assert_eq!(human(CONTENT), "11.2 MiB");
        assert_eq!(human(12), "12 bytes");
    }

    #[test]
    fn base64_and_back() {
        for bytes in [0, 1, 2, 3, 4, 1000, CONTENT] {
            assert!(raw(base64(bytes)) >= bytes);
        }
    }
}
