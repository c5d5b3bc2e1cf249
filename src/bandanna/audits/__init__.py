"""Attacks on releases and policies: what an audit finds is true, what it does not find is not."""
