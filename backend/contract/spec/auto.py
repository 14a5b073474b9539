"""A number that may be left to Burnish: `auto` in a spec, until the data and the model are known."""

from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidatorFunctionWrapHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from backend.contract.messages import message

AUTO: Any = "auto"
"""Declared as any type: `backend.preflight.auto_settings` replaces it before a number is used."""


class OrAuto:
    """Annotates a number's field so that `auto` is valid too."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            _number_or_auto, handler(source), serialization=core_schema.plain_serializer_function_ser_schema(_itself)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"const": AUTO, "type": "string"}, handler(schema)]}


def _number_or_auto(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    if isinstance(value, str) and not _is_number(value):
        if value == AUTO:
            return AUTO
        raise ValueError(message("input should be a valid number, or auto"))
    return validate(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _itself(value: Any) -> Any:
    return value
