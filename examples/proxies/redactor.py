"""A proxy that keeps secrets from the agent, and from the screen: keys and tokens in texts become `[secret]`.

accord conduct "python redactor.py" "gemini --acp"

It looks at the text of prompts, of updates, and of files that the agent reads through the client. A secret that is
split between two chunks of a message is not found.
"""

import re
from typing import Any

import msgspec

import accord
from accord import v1

SECRET = re.compile(
    r"AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36,}|sk-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)

proxy = accord.Proxy("redactor", version="1.0")


def redacted(value: Any) -> Any:
    """The same value, with no secret in any text in it."""
    match value:
        case str():
            return SECRET.sub("[secret]", value)
        case [*items]:
            return [redacted(item) for item in items]
        case {**members}:
            return {name: redacted(member) for name, member in members.items()}
        case accord.Unknown():
            return accord.Unknown(value.tag, redacted(value.raw))
        case msgspec.Struct():
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **{name: redacted(field) for name, field in fields.items()})
        case _:
            return value


@proxy.prompts
def hide_in_prompt(prompt: list[Any]) -> list[Any]:
    blocks: list[Any] = redacted(prompt)
    return blocks


@proxy.updates
def hide_in_update(update: Any) -> Any:
    return redacted(update)


@proxy.from_agent(v1.ReadTextFileRequest)
async def hide_in_file(request: v1.ReadTextFileRequest, hop: accord.Hop[Any]) -> v1.ReadTextFileResponse:
    response: v1.ReadTextFileResponse = redacted(await hop.forward(request))
    return response


if __name__ == "__main__":
    proxy.run()
