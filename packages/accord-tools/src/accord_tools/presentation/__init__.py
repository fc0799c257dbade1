"""The common presentation of the command line and the chat: styled text in rows, and words and signs of a session's
work.
"""
