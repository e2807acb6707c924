"""Contract suites, fakes and strategies, so that others can test their own back end against the same behaviour.

`ScriptedModel` is a chat model that says what it was told to say.
"""

from threefold.models.scripted import Asked, ScriptedModel

__all__ = ["Asked", "ScriptedModel"]
