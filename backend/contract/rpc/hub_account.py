"""Owns what is told about the hub login: `hub_account {}`, `hub_login {token}`, `hub_logout {}`, and their one answer."""

import msgspec


class HubAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Who is logged in to the model hub. The token itself is never part of an answer."""

    name: str = ""
    """Empty where nobody is, or where it cannot be known now."""
    full_name: str = ""
    organisations: list[str] = []
    has_token: bool = False
    from_environment: bool = False
    """The token stands in a variable, which comes before the one that is kept."""
    note: str = ""
    """Why the name is not known although there is a token, as a sentence."""
    token_file: str = ""
    """Where the hub library keeps the token."""
