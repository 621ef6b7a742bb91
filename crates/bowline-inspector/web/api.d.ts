// Types of the API of the inspector. Generated from the Rust types by `cargo test -p bowline-inspector` with
// UPDATE_EXPECT=1; do not edit.

/** The body of `POST /api/act`. */
export type Action = 
  | SendRequest & {
  action: "send";
}
  | {
  action: "cancel";
  /** The call, as `send` returned it. */
  call: number;
}
  | {
  action: "restart";
  /** Its configured name. */
  server: string;
}
  | {
  action: "stop";
  /** Its configured name. */
  server: string;
}
  | {
  action: "start";
  /** Its configured name. */
  server: string;
}
  | {
  action: "clear";
}
  | {
  action: "sign_out";
  /** Whether all browsers are signed out. Needs *control*. */
  all?: boolean;
}
  | {
  action: "answer";
  /** The id of the question. */
  question: string;
  /** The answer. */
  answer: Answer;
}
  | {
  action: "complete";
  /** The server. */
  server: string;
  /** `prompt` or `template`. */
  kind: ItemKind;
  /** The prompt, or the URI template. */
  name: string;
  /** The argument or variable. */
  argument: string;
  /** What was typed so far. */
  value: string;
  /** The other arguments that are filled in. */
  context?: Record<string, string>;
}
  | ResendRequest & {
  action: "resend";
}
  | {
  action: "subscribe";
  /** The server. */
  server: string;
  /** The resource, by its URI on the server. */
  uri: string;
  /** Whether to subscribe or to unsubscribe. */
  on: boolean;
}
  | {
  action: "level";
  /** The level, such as `debug`; absent for none. */
  level?: string;
}
  | {
  action: "ask_control";
  /** Four random digits that the page shows, so that the person knows which browser asks. */
  digits: string;
}
  | {
  action: "run_checks";
  /** The server. */
  server: string;
}
  | {
  action: "accept_pin";
  /** The server. */
  server: string;
  /** The tool, by its name on the server. */
  tool: string;
  /** The `digest` that was shown. */
  digest: string;
}
  | {
  action: "forget_answer";
  /** Its `id`. */
  id: string;
}
  | {
  action: "roots";
  /** URIs of folders. */
  roots: string[];
};

/** The alignment of a column. */
export type Align = "none" | "left" | "center" | "right";

/** An answer of the page. */
export type Answer = 
  | {
  kind: "allow";
  /** How long, one of the `scopes` of the question. */
  scope?: AnswerScope;
  /** What it covers, one of the `covers` of the question. */
  covers?: AnswerCovers;
  /** The fields of a form; the edited request or result of sampling. */
  edit?: unknown;
  /** The page opened the URL itself, so the host does not. */
  opened?: boolean;
}
  | {
  kind: "decline";
  /** How long. */
  scope?: AnswerScope;
}
  | {
  kind: "cancel";
};

/** What an answer about a tool covers. */
export type AnswerCovers = "tool" | "read_only_tools" | "server";

/** How long an answer applies. */
export type AnswerScope = "once" | "run" | "project" | "always";

/** A remembered answer. */
export type AnswerView = {
  /** Names it, for `forget_answer`. */
  id: string;
  /** `allow` or `deny`. */
  effect: string;
  /** The configured name of the server. */
  server: string;
  /** What it is about: the action and its tool, prompt or URI, or a larger part of the server. */
  what: Shown;
  /** Whether it applies only to the same arguments. */
  same_arguments: boolean;
  /** Whether it is forgotten when the program ends. */
  this_run: boolean;
  /** The project that it applies to; all if absent. */
  project?: Shown;
  /** The user that it applies to, if users are distinguished. */
  user?: Shown;
  /** When it expires. */
  expires?: string;
};

/** Who answered a question. */
export type AnsweredBy = "page" | "terminal" | "nobody";

/** An answered question. */
export type AnsweredQuestion = {
  /** The question. */
  question: InboxQuestion;
  /** When it was answered, in milliseconds since 1970. */
  at: number;
  /** Who answered. */
  by: AnsweredBy;
  /** Whether the answer was yes; absent if it was cancelled. */
  allowed?: boolean;
};

/** The answers that the policy remembers. */
export type AnswersView = {
  /** The answers, by server. */
  answers: AnswerView[];
  /** The file that has the lasting ones, if there is one. */
  file?: string;
};

/** The body of every reply that is not 2xx. */
export type ApiError = {
  /** What happened. */
  error: string;
  /** What to do. */
  advice?: string;
  /** Where in the request, as a JSON pointer. */
  pointer?: string;
};

/** What is asked. All `Shown` values are text of a server and are drawn in a box of their own. */
export type Asks = 
  | {
  kind: "start";
  /** Where it is configured. */
  origin: string;
  /** The command or URL. */
  description: Shown[];
}
  | {
  kind: "call";
  /** The tool. */
  tool: Shown;
  /** Its title. */
  title?: Shown;
  /** The arguments as JSON text. */
  arguments: Shown;
  /** What the server says about the tool, as words. */
  hints: string[];
}
  | {
  kind: "access";
  /** `read` or `prompt`. */
  action: string;
  /** The URI or name. */
  name: Shown;
}
  | {
  kind: "changed";
  /** The tool. */
  tool: Shown;
  /** The difference, line by line. */
  diff: DiffLine[];
}
  | {
  kind: "new";
  /** The tool. */
  tool: Shown;
  /** Its definition as JSON text. */
  definition: Shown;
}
  | {
  kind: "sample";
  /** The request, which can be edited. */
  request: unknown;
}
  | {
  kind: "sample_result";
  /** The response, which can be edited. */
  result: unknown;
}
  | {
  kind: "form";
  /** What the server says. */
  message: Shown;
  /** The form. */
  plan: FormPlan;
}
  | {
  kind: "visit";
  /** What the server says. */
  message: Shown;
  /** The URL, whole. */
  target: LinkTarget;
}
  | {
  kind: "roots";
  /** Their URIs. */
  roots: Shown[];
};

/** A line of the audit log. */
export type AuditLine = {
  /** Its position in the file. */
  at: number;
  /** The entry; see the chapter about the audit log for its members. Keys that only look get no arguments. */
  entry: unknown;
};

/** Lines of the audit log, the latest first. */
export type AuditPage = {
  /** Whether there is an audit log; `[audit] file` of the configuration sets it. */
  is_on: boolean;
  /** The lines. */
  lines: AuditLine[];
  /** The position to continue at, if there may be more. */
  next?: number;
};

/** Which lines of the audit log are wanted. */
export type AuditRequest = {
  /** Only lines before this position: `next` of the page before. */
  before?: number;
  /** How many lines at most; 200 if absent. */
  limit?: number;
  /** Only lines about this server. */
  server?: string;
  /** Only lines of this kind: `decision`, `call`, `pin`, `refusal`, `login` or `page`. */
  event?: string;
  /** Only lines that contain this text, masked; case does not matter for ASCII letters. */
  text?: string;
};

/** A block of Markdown. */
export type Block = 
  | {
  kind: "paragraph";
  /** Its text. */
  inlines: Inline[];
}
  | {
  kind: "heading";
  /** 1 to 6. */
  level: number;
  /** Its text. */
  inlines: Inline[];
}
  | {
  kind: "code";
  /** The language. */
  language?: string;
  /** The text. */
  text: string;
}
  | {
  kind: "quote";
  /** Its blocks. */
  blocks: Block[];
}
  | {
  kind: "list";
  /** The first number of an ordered list. */
  start?: number;
  /** The items. */
  items: Block[][];
}
  | {
  kind: "table";
  /** `none`, `left`, `center` or `right` per column. */
  align: Align[];
  /** The cells of the head. */
  head: Inline[][];
  /** The cells of each row. */
  rows: Inline[][][];
}
  | {
  kind: "rule";
};

/** What the buffer holds and may hold. */
export type BufferState = {
  /** The limit in bytes. */
  limit: number;
  /** Bytes in use. */
  used: number;
  /** Whether bodies are kept. If not, `message` has heads only. */
  bodies: boolean;
  /** The oldest number that is kept; 0 if there is none. */
  first: number;
  /** The newest number; 0 if there is none. */
  last: number;
  /** When the oldest kept message passed, in milliseconds since 1970. */
  since?: number;
  /** How many messages were dropped because the buffer was full. */
  dropped: number;
};

/** One call of a tree. */
export type CallNode = {
  /** The head of the request, decision or question. */
  head: Head;
  /** The head that ends it. */
  end?: Head;
  /** Notifications of the call, oldest first. */
  notices: Head[];
  /** What it caused, oldest first. */
  children: CallNode[];
};

/** A call with everything it caused. */
export type CallTree = {
  /** The call at the top: the one that was asked for, or the one that caused it. */
  root: CallNode;
};

/** A cell. */
export type Cell = {
  /** Its text. */
  text: string;
  /** The number to sort by. */
  number?: number;
};

/** Counters that grow whenever a section changes. */
export type Changed = {
  /** State of servers: query `overview`. */
  servers: number;
  /** Lists of tools, resources and prompts: query `entries`. */
  entries: number;
  /** Connected clients: query `overview`. */
  clients: number;
  /** Questions: query `inbox`. */
  inbox: number;
  /** The buffer was cleared: query `calls`. */
  cleared: number;
  /** Checks of a server began or ended: query `checks`. */
  checks: number;
  /** A key may do more than before: query `overview` for its grade. */
  access: number;
};

/** Arguments to check. */
export type CheckRequest = {
  /** The configured name of the server. */
  server: string;
  /** The kind of the item. */
  kind: ItemKind;
  /** Its name on the server; the URI of a resource or template. */
  name: string;
  /** The arguments. */
  value: unknown;
};

/** Errors of arguments. */
export type Checked = {
  /** The errors by position. Empty if the arguments are valid. */
  problems: FormProblem[];
};

/** How far the checks of a server are. */
export type ChecksState = "none" | "running" | "done" | "failed";

/** The latest checks of a server. */
export type ChecksView = {
  /** Whether checks can run here. */
  is_available: boolean;
  /** How far they are. */
  state: ChecksState;
  /** When they began, in milliseconds since 1970. */
  at?: number;
  /** Why they could not run. */
  problem?: Shown;
  /** What they found, the worst first. */
  findings: FindingView[];
};

/** One choice. */
export type Choice = {
  /** The value to send. */
  value: unknown;
  /** What is shown. */
  label: Shown;
};

/** A client at the gateway. */
export type ClientSummary = {
  /** The name that it reports. */
  name: string;
  /** Its version, as reported. */
  version?: string;
  /** Its revision. */
  revision?: string;
  /** When its first message came, in milliseconds since 1970. */
  since: number;
  /** When its latest message came. */
  latest: number;
  /** How many tool calls it made. */
  calls: number;
};

/** A column. */
export type Column = {
  /** Its name. */
  name: Shown;
  /** Whether all its values are numbers. */
  numeric: boolean;
};

/** Completions. */
export type Completed = {
  /** The values. */
  values: string[];
  /** Whether there are more. */
  more: boolean;
};

/** How to connect one client program. */
export type ConnectHint = {
  /** The client program. */
  client: string;
  /** A command or a piece of configuration. */
  text: string;
};

/** A part of a result. */
export type ContentPart = 
  | {
  kind: "markdown";
  /** The blocks. */
  blocks: Block[];
  /** The text. */
  source: Shown;
}
  | {
  kind: "text";
  /** The text. */
  text: Shown;
  /** What it is, such as `json` or a MIME type. */
  language?: string;
}
  | {
  kind: "image";
  /** The MIME type: `image/…`. */
  mime: string;
  /** Base64. */
  data: string;
  /** The decoded size. */
  bytes: number;
}
  | {
  kind: "audio";
  /** The MIME type: `audio/…`. */
  mime: string;
  /** Base64. */
  data: string;
  /** The decoded size. */
  bytes: number;
}
  | {
  kind: "link";
  /** The URI, exactly. */
  uri: string;
  /** The URI to show. */
  shown: Shown;
  /** Its name. */
  name: Shown;
  /** Its description. */
  description?: Shown;
  /** Its MIME type. */
  mime?: Shown;
}
  | {
  kind: "resource";
  /** The URI to show. */
  uri: Shown;
  /** Its MIME type. */
  mime?: Shown;
  /** Its content. */
  content: ContentPart;
}
  | {
  kind: "binary";
  /** The MIME type. */
  mime?: Shown;
  /** Base64. */
  data: string;
  /** The decoded size. */
  bytes: number;
}
  | {
  kind: "unknown";
  /** The JSON text. */
  json: string;
};

/** Text to paste. */
export type Copied = {
  /** The text. Secrets are masked; a command is one line. */
  text: string;
  /** What is left out or masked, if anything. */
  note?: string;
};

/** The text that `copy` makes. */
export type CopyForm = "command" | "curl" | "json" | "transcript";

/** A call to decide about in advance. */
export type DecideRequest = {
  /** The configured name of the server. */
  server: string;
  /** `tool`, `resource` or `prompt`. */
  kind: ItemKind;
  /** Its name on the server; the URI of a resource. */
  name: string;
  /** The arguments; none if absent. */
  arguments?: unknown;
  /** The name that the calling client reports. */
  client?: string;
};

/** What the policy would decide. */
export type Decided = {
  /** `allow`, `ask` or `deny`. */
  effect: string;
  /** What decides: `rule`, `default`, `remembered` (an earlier answer) or `check` (a changed definition, ambiguous arguments). */
  by: string;
  /** The reason in words. */
  reason: string;
  /** The place of the rule in `rules`, if one of them decides. */
  rule?: number;
  /** The file and line of that rule, if they are known. */
  origin?: string;
  /** How the tool compares with the definition that was accepted; absent for other items, and if definitions are not compared. */
  pin?: PinState;
};

/** A line of a difference. */
export type DiffLine = {
  /** `same`, `added` or `removed`. */
  change: string;
  /** The line. */
  text: Shown;
};

/** The direction of a message, seen from the host. */
export type Direction = "in" | "out";

/** Nothing to report. */
export type Done = Record<string, unknown>;

/** The body of `POST /api/enter`. */
export type Enter = {
  /** The one-time code from the fragment of the link. */
  code: string;
};

/** The key for a code. */
export type Entered = {
  /** The key, to be sent as `Authorization: Bearer KEY`. It is valid for this launch. */
  key: string;
  /** What it may do. */
  grade: Grade;
  /** The id of this launch. */
  run: string;
};

/** Items of all servers. */
export type Entries = {
  /** One group per server, by name. */
  servers: ServerEntries[];
};

/** One item. */
export type Entry = {
  /** Its kind. */
  kind: ItemKind;
  /** Its name on the server, exactly; the URI of a resource, the template of a template. Send this back. */
  name: string;
  /** The name to show. */
  label: Shown;
  /** The name under which clients of the gateway know it. */
  gateway_name: string;
  /** Its title. */
  title?: Shown;
  /** Its description. */
  description?: Shown;
  /** What the server says about a tool, as words: `read-only`, `destructive`, `idempotent`, `open world`. */
  hints: string[];
  /** MIME type of a resource. */
  mime?: Shown;
  /** Size of a resource in bytes. */
  size?: number;
  /** How many required arguments it has. */
  required: number;
  /** Whether the tool has an output schema. */
  has_output_schema: boolean;
  /** About how many tokens its definition costs. */
  tokens: number;
};

/** An error of a call. */
export type ErrorView = {
  /** The JSON-RPC code. */
  code?: number;
  /** The words of the server or of the host. */
  message: Shown;
  /** What to do next. */
  advice?: string;
  /** `data` of the error, as JSON text. */
  data?: string;
};

/** One line of the stream of `GET /api/events`. An empty line means that the connection is alive. */
export type Event = {
  run: string;
} | {
  heads: Head[];
} | {
  changed: Changed;
} | {
  gap: [number, number];
};

/** One field. */
export type Field = {
  /** The member name in the object that contains it; empty for the root, list items and variants. */
  name: string;
  /** The label: the title of the schema, or the name. */
  label: Shown;
  /** The description. */
  description?: Shown;
  /** Whether the member must be present. */
  required: boolean;
  /** Whether `null` is a value of it. */
  nullable: boolean;
  /** The default of the schema. It is not sent unless the user keeps it in the value. */
  default?: unknown;
  /** What is drawn. */
  input: Input;
};

/** How bad a finding is. */
export type FindingLevel = "error" | "warning" | "hint";

/** Something that checks found. */
export type FindingView = {
  /** How bad it is. */
  level: FindingLevel;
  /** The stable name of the check. */
  check: string;
  /** What was found. */
  what: Shown;
  /** Where, in words. */
  places: Shown[];
  /** What to do. */
  advice: string;
  /** The numbers of the messages that it is about. */
  messages: number[];
};

/** A form. The page draws it and keeps one JSON value. */
export type FormPlan = {
  /** The root: an object field, or a JSON field for schemas that are not about an object. */
  root: Field;
  /** The value to start with: defaults, and required members that have only one possible value. */
  value: unknown;
};

/** An error at a position. */
export type FormProblem = {
  /** A JSON pointer into the value; empty for the whole. */
  pointer: string;
  /** What is wrong. */
  message: string;
};

/** What a search found. */
export type Found = {
  /** Numbers of messages, newest first, at most 1,000. */
  seqs: number[];
  /** Continue with `before` set to this number; absent at the end. */
  next?: number;
};

/** Who may do what with a key. */
export type Grade = "view" | "control";

/** What the page knows of every message without asking: about a hundred bytes. */
export type Head = {
  /** The number of the message, from 1 on. It never repeats in one launch. */
  seq: number;
  /** Milliseconds since 1970, with a fraction. */
  at: number;
  /** The number of the connection. Every request of 2026-07-28 over HTTP is a connection of its own. */
  connection: number;
  /** The name of the client or server at the other end: as configured for servers, as reported for clients, `page` for this page. Hidden characters are made visible. */
  peer: string;
  /** Which side of the host it passed. */
  leg: Leg;
  /** Its direction. */
  direction: Direction;
  /** What it is. */
  kind: Kind;
  /** The method, also of a response. */
  method?: string;
  /** The tool, prompt or URI; the text of a line or decision, cut after 200 bytes. */
  name?: string;
  /** The JSON-RPC id, as JSON text. */
  id?: string;
  /** The call that it belongs to: the `seq` of the request of this connection that it is, answers or notifies about. */
  call?: number;
  /** The call that caused `call`. A later round of a call has the first round as its parent. */
  parent?: number;
  /** The size of the message in bytes. */
  size: number;
  /** How the call ended; only in the head that ends it. */
  status?: Status;
  /** The JSON-RPC error code, or the HTTP status if no JSON-RPC message came. */
  code?: number;
  /** Milliseconds since the request; only in the head that ends it. */
  took?: number;
  /** The revision of the connection, such as `2026-07-28`. */
  revision?: string;
  /** The task that it is about. */
  task?: TaskNote;
};

/** Heads of messages. */
export type HeadsPage = {
  /** The heads, oldest first. */
  heads: Head[];
  /** Whether there are more after the last one. */
  more: boolean;
  /** The numbers, first and last, that were asked for and are dropped. */
  gap?: [number, number];
};

/** Questions. */
export type Inbox = {
  /** Those that wait, oldest first. */
  waiting: InboxQuestion[];
  /** Those that were answered, newest first, at most 100. */
  answered: AnsweredQuestion[];
};

/** A question that waits. */
export type InboxQuestion = {
  /** A random id. */
  id: string;
  /** When it was asked, in milliseconds since 1970. */
  at: number;
  /** The configured name of the server. */
  server: string;
  /** The client whose call caused it, as reported. */
  client?: Shown;
  /** The call that caused it. */
  call?: number;
  /** Why it is asked, in our words. */
  why?: string;
  /** Whether it can be answered in the terminal only. */
  terminal_only: boolean;
  /** How long a yes may hold. */
  scopes: AnswerScope[];
  /** What a yes may cover. */
  covers: AnswerCovers[];
  /** What is asked. */
  asks: Asks;
};

/** Text of Markdown. */
export type Inline = 
  | {
  kind: "text";
  /** The text. */
  text: string;
}
  | {
  kind: "code";
  /** The text. */
  text: string;
}
  | {
  kind: "strong";
  /** Its text. */
  inlines: Inline[];
}
  | {
  kind: "emphasis";
  /** Its text. */
  inlines: Inline[];
}
  | {
  kind: "strike";
  /** Its text. */
  inlines: Inline[];
}
  | {
  kind: "link";
  /** Its text. */
  inlines: Inline[];
  /** Where it leads. */
  target: LinkTarget;
}
  | {
  kind: "image";
  /** The alternative text. */
  alt: string;
  /** The address. */
  target: LinkTarget;
}
  | {
  kind: "break";
};

/** The kinds of fields. */
export type Input = 
  | {
  kind: "text";
  /** The format, such as `email`, `uri`. */
  format?: string;
  /** The shortest length. */
  min_length?: number;
  /** The greatest length. */
  max_length?: number;
  /** An example to show in the empty field. */
  example?: string;
  /** Whether the name says that it is a secret; shown as a password field. */
  secret: boolean;
}
  | {
  kind: "long_text";
}
  | {
  kind: "number";
  /** Whether it is an integer. */
  integer: boolean;
  /** The smallest value. */
  minimum?: number;
  /** The greatest value. */
  maximum?: number;
}
  | {
  kind: "switch";
}
  | {
  kind: "choice";
  /** The choices. */
  choices: Choice[];
}
  | {
  kind: "several";
  /** The choices. */
  choices: Choice[];
}
  | {
  kind: "date_time";
  /** `date`, `time` or `date-time`. */
  format: string;
}
  | {
  kind: "file";
  /** The MIME type, if the schema names one. */
  mime?: string;
}
  | {
  kind: "list";
  /** The field of each item. */
  item: Field;
  /** The smallest number of items. */
  min_items?: number;
  /** The greatest number of items. */
  max_items?: number;
}
  | {
  kind: "map";
  /** The field of each value. */
  value: Field;
}
  | {
  kind: "object";
  /** Its fields, in the order of the schema. */
  fields: Field[];
  /** Whether other members are allowed. */
  open: boolean;
}
  | {
  kind: "one_of";
  /** The shapes. */
  variants: Variant[];
  /** The variant that the default value is of. */
  selected: number;
}
  | {
  kind: "json";
  /** Why, for example "uses `if`". */
  why: string;
};

/** What kind of item a server offers. */
export type ItemKind = "tool" | "resource" | "template" | "prompt";

/** Names an item of a server. */
export type ItemName = {
  /** The configured name of the server. */
  server: string;
  /** Its kind. */
  kind: ItemKind;
  /** Its name on the server; the URI of a resource or template. */
  name: string;
};

/** What a head describes. */
export type Kind = "request" | "response" | "notification" | "other" | "output" | "policy" | "question" | "model" | "state";

/** Which side of the host a message passed. */
export type Leg = "client" | "server" | "host";

/** A new link, for `bowline open`. The request has `Authorization: Bearer LAUNCH-SECRET`. */
export type Link = {
  /** The path and fragment to append to the address: `/open#CODE`. */
  path: string;
  /** What the key for this code may do. */
  grade: Grade;
};

/** Where a link leads. */
export type LinkTarget = {
  /** The URL as text. */
  text: Shown;
  /** The URL to open by a click, with `noopener,noreferrer`. Absent for other schemes than `http` and `https`. */
  url?: string;
  /** Its host. */
  host?: string;
  /** What is easy to misread. */
  warnings: string[];
};

/** One message. */
export type Message = {
  /** Its head. */
  head: Head;
  /** The text as it passed, except for masked values. Absent if bodies are not kept or it was dropped. */
  text?: string;
  /** How many bytes of the message `text` leaves out at its end. */
  left_out: number;
  /** SHA-256 of the whole message in hexadecimal, if the buffer keeps only its beginning. */
  sha256?: string;
  /** How many values were masked. */
  masked: number;
  /** How many hidden characters the text has. */
  hidden: number;
  /** Status and headers of the HTTP response that carried it, one `name: value` per line, masked. */
  http?: string;
};

/** Which command runs this host. */
export type Mode = "up" | "inspect" | "gateway" | "folder";

/** The launch and its servers. */
export type Overview = {
  /** The id of this launch. */
  run: string;
  /** The version of the program. */
  version: string;
  /** The command. */
  mode: Mode;
  /** What the key of this request may do. */
  grade: Grade;
  /** Whether a terminal can be asked to let this browser act. */
  can_ask_control: boolean;
  /** When the host started, in milliseconds since 1970. */
  started: number;
  /** The present time of the host, in milliseconds since 1970. */
  now: number;
  /** The counters of this moment. */
  changed: Changed;
  /** The buffer. */
  buffer: BufferState;
  /** The servers: failed ones first, then by name. */
  servers: ServerSummary[];
  /** Clients that are or were connected, the latest first. */
  clients: ClientSummary[];
  /** How to connect clients to the gateway; empty without one. */
  connect: ConnectHint[];
  /** A call to try, if there is a good one. */
  try_call?: TryCall;
  /** How many questions wait. */
  waiting: number;
  /** The revisions that a call can be sent with, oldest first. */
  revisions: string[];
};

/** How a tool compares with the definition that was accepted. */
export type PinState = "same" | "new" | "changed" | "removed" | "unknown";

/** Accepted definitions of all servers. */
export type PinsView = {
  /** The servers, by name. */
  servers: ServerPins[];
};

/** Progress of a call. */
export type Progress = {
  /** So far. */
  progress: number;
  /** In total, if known. */
  total?: number;
  /** What it says. */
  message?: Shown;
};

/** A message of a prompt. */
export type PromptMessage = {
  /** `user` or `assistant`. */
  role: Shown;
  /** Its content. */
  part: ContentPart;
};

/** The body of `POST /api/query`. */
export type Query = 
  | {
  query: "overview";
}
  | {
  query: "server";
  /** Its configured name. */
  server: string;
}
  | {
  query: "entries";
}
  | ItemName & {
  query: "form";
}
  | CheckRequest & {
  query: "check";
}
  | {
  query: "calls";
  /** Only heads after this number. */
  after?: number;
  /** How many at most; 10,000 if absent. */
  limit?: number;
}
  | {
  query: "call";
  /** The `seq` of its request. */
  call: number;
}
  | {
  query: "message";
  /** Its number. */
  seq: number;
  /** Whether a body of more than 64 KiB is wanted whole, as far as it is kept. */
  all?: boolean;
}
  | {
  query: "result";
  /** The `seq` of its request. */
  call: number;
}
  | {
  query: "find";
  /** The text; case does not matter for ASCII letters. */
  text: string;
  /** Only messages before this number, for the next page. */
  before?: number;
}
  | {
  query: "inbox";
}
  | {
  query: "copy";
  /** The `seq` of any message of the call. */
  seq: number;
  /** The form. */
  as: CopyForm;
}
  | {
  query: "rules";
}
  | DecideRequest & {
  query: "decide";
}
  | {
  query: "pins";
}
  | {
  query: "checks";
  /** Its configured name. */
  server: string;
}
  | {
  query: "answers";
}
  | AuditRequest & {
  query: "audit";
};

/** A request that is sent again. */
export type ResendRequest = {
  /** The number of the request. */
  seq: number;
  /** Replaces `arguments`; absent for the same ones, with their secrets. */
  arguments?: unknown;
  /** Sends it over a connection of its own that speaks this revision. */
  revision?: string;
};

/** A result, ready to be drawn. */
export type ResultView = {
  /** The call. */
  call: number;
  /** How it ended. */
  verdict: Verdict;
  /** The number of the response. */
  response?: number;
  /** Milliseconds. */
  took?: number;
  /** Bytes of the response. */
  size: number;
  /** About how many tokens the result costs a model. */
  tokens: number;
  /** The content of a tool result or resource. */
  parts: ContentPart[];
  /** The messages of a prompt. */
  messages: PromptMessage[];
  /** `structuredContent`, or the whole result of other methods, as JSON text. */
  json?: string;
  /** The structured content as a table, if it is one. */
  table?: Table;
  /** Whether the result fits the output schema; absent without one. */
  fits_schema?: boolean;
  /** Where it does not. */
  problems: FormProblem[];
  /** The error. */
  error?: ErrorView;
  /** The latest progress while it runs. */
  progress?: Progress;
  /** The task that it became, as its server described it last. */
  task?: TaskNote;
  /** How often a person is asked right now because of this call. */
  waiting: number;
  /** The last lines of the server's output since the call started, if it failed. */
  output: Shown[];
};

/** A rule. */
export type RuleView = {
  /** `allow`, `ask` or `deny`. */
  effect: string;
  /** The rule in words, with its position. */
  text: string;
  /** The file and line, if they are known. */
  origin?: string;
};

/** The policy. */
export type Rules = {
  /** The rules. The first that matches decides. */
  rules: RuleView[];
  /** Rules of the command line that allow what would otherwise ask. */
  unasked: RuleView[];
  /** What happens if no rule matches: `ask`, `client` or `deny`. */
  consent: string;
};

/** A request to a server. */
export type SendRequest = {
  /** The configured name of the server. */
  server: string;
  /** The method: `tools/call`, `resources/read`, `prompts/get`, or a custom one. */
  method: string;
  /** The parameters with the names that the server uses, without `_meta`. The text is passed on as it is. */
  params: unknown;
  /** `_meta` for the server. */
  meta?: unknown;
  /** Milliseconds until the call is cancelled; the configured timeout of the server applies in any case. */
  timeout?: number;
  /** Sends it over a connection of its own that speaks this revision, such as `2025-06-18`. */
  revision?: string;
};

/** A call was started. */
export type Sent = {
  /** The call: the `seq` of its request in the stream. */
  call: number;
};

/** The page of a server. */
export type ServerDetail = {
  /** The row of Home. */
  summary: ServerSummary;
  /** Name that the server reports. */
  reported_name?: Shown;
  /** Version that the server reports. */
  reported_version?: Shown;
  /** Its capabilities, as JSON. */
  capabilities?: unknown;
  /** Its instructions. */
  instructions?: Shown;
  /** How it is reached: command or URL, with secrets masked. */
  target?: Shown;
  /** The last lines of its output, oldest first. */
  output: Shown[];
};

/** Items of one server. */
export type ServerEntries = {
  /** The server. */
  server: string;
  /** Its items: tools, resources, templates, prompts, each in the server's order. */
  items: Entry[];
  /** How many tools are hidden by the configuration. */
  hidden: number;
  /** Why the lists could not be read, if so. */
  problem?: Shown;
};

/** Accepted definitions of a server. */
export type ServerPins = {
  /** The configured name. */
  server: string;
  /** Its tools, by name. */
  tools: ToolPinView[];
};

/** Whether a server can be called. */
export type ServerState = "idle" | "starting" | "ready" | "failed" | "disabled" | "needs_approval" | "invalid";

/** One row of Home. */
export type ServerSummary = {
  /** The configured name. */
  name: string;
  /** Its state. */
  state: ServerState;
  /** Why it cannot be used, with exit status and last output. */
  reason?: Shown;
  /** The negotiated revision. */
  revision?: string;
  /** How many tools it lists. */
  tools?: number;
  /** About how many tokens its tool definitions cost. */
  tokens?: number;
  /** How often it was started. */
  starts: number;
  /** How many calls it received. */
  calls: number;
  /** How many failed. */
  failed: number;
  /** How many run now. */
  running: number;
  /** Milliseconds in this state. */
  since: number;
  /** Whether it can be started, stopped and restarted from here. */
  controllable: boolean;
  /** The command that logs in, if a missing login is why it failed. */
  login?: string;
};

/** Text of a server. Hidden, bidirectional and control characters are replaced by visible ones. */
export type Shown = {
  /** The text. */
  text: string;
  /** How many characters were made visible. */
  hidden?: number;
  /** How many bytes are left out at the end. */
  left_out?: number;
};

/** How a request, question or decision ended. */
export type Status = "done" | "tool_error" | "rejected" | "input_required" | "no_answer" | "cancelled" | "allowed" | "denied" | "accepted" | "declined" | "ready" | "failed" | "stopped";

/** A table of structured content. */
export type Table = {
  /** The columns. */
  columns: Column[];
  /** The cells of at most 1,000 rows, as text. */
  rows: Cell[][];
  /** How many rows there are. */
  total: number;
};

/** What a message says about a task. */
export type TaskNote = {
  /** The id of the task, cut after 200 bytes. */
  id: string;
  /** Its status, such as `working`; absent if the message does not say it. */
  status?: string;
  /** What its server says about the status, cut after 200 bytes. */
  message?: string;
};

/** The accepted definition of a tool. */
export type ToolPinView = {
  /** The name, to be sent back. */
  name: string;
  /** The name, to be shown. */
  label: Shown;
  /** How it compares. */
  state: PinState;
  /** The digest of the listed definition, for `accept_pin`. */
  digest?: string;
  /** What changed. */
  diff: DiffLine[];
};

/** A call that Home offers. */
export type TryCall = {
  /** The server. */
  server: string;
  /** The tool, by its name on the server. */
  tool: string;
  /** Arguments to start with. */
  arguments: unknown;
};

/** A variant of a one-of. */
export type Variant = {
  /** What is shown. */
  label: Shown;
  /** Its field. Members of an object that have a single value (`const`) are in `fixed` only. */
  field: Field;
  /** Members that choosing this variant sets. */
  fixed?: unknown;
};

/** How a call ended, in the words of the three headlines. */
export type Verdict = "running" | "done" | "tool_error" | "rejected" | "no_answer" | "cancelled";
