"""`spoken`: the protocol's version that the running test speaks, so that a test is written once for both.

    @handlers.on(spoken.PromptRequest)
    async def prompt(request, context):
        await context.peer.notify(chunk("hello", request.session_id))
        return spoken.ended("end_turn")

A class has the name of version 1 and is the class of the version that is spoken. What has another shape has a word of
its own: the end of a prompt, an update, a question to the client, a login. The engine gives a prompt's answer no
meaning, so a test in version 2 reads the receipt where one in version 1 reads the stop reason.

`connect` sets the version. An agent in a process of its own is told it.
"""

from __future__ import annotations

from accord.schema import v1, v2

RENAMED = {
    "SessionNotification": "UpdateSessionNotification",
    "CancelNotification": "CancelSessionNotification",
    "AuthenticateRequest": "LoginAuthRequest",
    "AuthenticateResponse": "LoginAuthResponse",
}
"""The classes that have another name in version 2."""

INFO = {"name": "test", "version": "1"}


class Spoken:
    """Gives the classes and the words of one version."""

    version = 1

    @property
    def schema(self):
        return v1 if self.version == 1 else v2

    def __getattr__(self, name):
        return getattr(self.schema, name if self.version == 1 else RENAMED.get(name, name))

    # The handshake

    @property
    def hello(self):
        """The params of an `initialize`."""
        return {"protocolVersion": 1} if self.version == 1 else {"protocolVersion": 2, "info": INFO}

    def welcome(self, capabilities):
        """The result of an `initialize`."""
        if self.version == 1:
            return {"protocolVersion": 1, "agentCapabilities": capabilities}
        return {"protocolVersion": 2, "info": INFO, "capabilities": capabilities}

    def welcomed(self, capabilities=None):
        """The result of an `initialize`, typed; `capabilities` are those of version 1."""
        if self.version == 1:
            return v1.InitializeResponse(1, capabilities or v1.AgentCapabilities())
        declared = v2.AgentCapabilities(meta=None if capabilities is None else capabilities.meta)
        return v2.InitializeResponse(2, v2.Implementation(**INFO), declared)

    # A prompt, its updates and its answer

    def ended(self, word):
        """The answer to a prompt, typed, with a word by which a test knows it."""
        return v1.PromptResponse(word) if self.version == 1 else v2.PromptResponse(v2.MessageId(word))

    def ending(self, word="end_turn"):
        """The answer to a prompt as it is on the wire."""
        return {"stopReason" if self.version == 1 else "messageId": word}

    def end_of(self, answer):
        """The word of an answer to a prompt."""
        return answer.stop_reason if self.version == 1 else answer.message_id

    def chunk(self, text):
        """An update that adds text of the agent."""
        if self.version == 1:
            return v1.AgentMessageChunk.of(text)
        return v2.AgentMessageChunk.of(text, v2.MessageId("m"))

    def chunk_on_the_wire(self, text):
        said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        return said if self.version == 1 else {**said, "messageId": "m"}

    # A question of the agent to its client: in version 1 about a file, in version 2 about a permission

    @property
    def question_method(self):
        return self.QuestionRequest.__method__

    @property
    def QuestionRequest(self):  # noqa: N802
        return v1.ReadTextFileRequest if self.version == 1 else v2.RequestPermissionRequest

    def question(self, session, about, **more):
        if self.version == 1:
            return v1.ReadTextFileRequest(v1.SessionId(session), about, **more)
        return v2.RequestPermissionRequest(v1.SessionId(session), about, [v2.PermissionOption.of("allow_once")], **more)

    def question_params(self, session="s", about="/f", **more):
        if self.version == 1:
            return {"sessionId": session, "path": about, **more}
        options = [{"optionId": "a", "name": "Allow", "kind": "allow_once"}]
        return {"sessionId": session, "title": about, "options": options, **more}

    def topic(self, request):
        """What a question is about."""
        return request.path if self.version == 1 else request.title

    def topic_on_the_wire(self, params):
        return params["path" if self.version == 1 else "title"]

    def told(self, word=""):
        """The client's answer to a question, typed."""
        if self.version == 1:
            return v1.ReadTextFileResponse(word)
        return v2.RequestPermissionResponse.selected(v2.PermissionOptionId(word))

    def telling(self, word=""):
        """The client's answer to a question as it is on the wire."""
        if self.version == 1:
            return {"content": word}
        return {"outcome": {"outcome": "selected", "optionId": word}}

    def answered(self, answer):
        """The word of an answer to a question."""
        return answer.content if self.version == 1 else answer.outcome.option_id

    # A replay: in version 1 a load, in version 2 a resume that asks for it

    @property
    def ReplayRequest(self):  # noqa: N802
        return v1.LoadSessionRequest if self.version == 1 else v2.ResumeSessionRequest

    def replay(self, session):
        if self.version == 1:
            return v1.LoadSessionRequest(session_id=v1.SessionId(session), cwd="/", mcp_servers=[])
        return v2.ResumeSessionRequest(v1.SessionId(session), "/", replay_from=v2.ReplayFromStart())

    def replayed(self):
        return v1.LoadSessionResponse() if self.version == 1 else v2.ResumeSessionResponse()

    # Logging in

    @property
    def login_method(self):
        return "authenticate" if self.version == 1 else "auth/login"


spoken = Spoken()
